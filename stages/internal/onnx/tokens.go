package onnx

import "fmt"

// Tokens say how the tokens of a vision transformer lie in the image: Prefix tokens without a place, such as
// a class token and registers, then Height × Width patches, row by row. The zero value says nothing.
type Tokens struct{ Prefix, Height, Width int }

// maxTokens bounds each number of [Tokens].
const maxTokens = 1 << 14

// IsZero reports whether nothing is stated.
func (t Tokens) IsZero() bool { return t == Tokens{} }

// Count returns the number of all tokens.
func (t Tokens) Count() int { return t.Prefix + t.Height*t.Width }

// MarshalText formats t as in an experiment file, such as 5+7x7; "none" for the zero value.
func (t Tokens) MarshalText() ([]byte, error) {
	if t.IsZero() {
		return []byte("none"), nil
	}
	return fmt.Appendf(nil, "%d+%dx%d", t.Prefix, t.Height, t.Width), nil
}

// String formats t as [Tokens.MarshalText] does.
func (t Tokens) String() string {
	b, _ := t.MarshalText()
	return string(b)
}

// UnmarshalText parses "none" or "5+7x7".
func (t *Tokens) UnmarshalText(b []byte) error {
	text := string(b)
	*t = Tokens{}
	if text == "none" || text == "" {
		return nil
	}
	var read Tokens
	_, err := fmt.Sscanf(text, "%d+%dx%d", &read.Prefix, &read.Height, &read.Width)
	if err != nil || read.String() != text || read.Prefix < 0 || read.Height < 1 || read.Width < 1 ||
		max(read.Prefix, read.Height, read.Width) > maxTokens {
		return fmt.Errorf("%q doesn't say how tokens lie in the image: expected the number of those before "+
			"the patches and the grid of the patches, such as 5+7x7 for a class token, 4 registers and 7 "+
			"rows of 7 patches, or none", b)
	}
	*t = read
	return nil
}
