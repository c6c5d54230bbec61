package onnx

import "testing"

func TestTokens(t *testing.T) {
	for text, want := range map[string]Tokens{"5+7x7": {5, 7, 7}, "0+8x4": {0, 8, 4}, "none": {}, "": {}} {
		var got Tokens
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
		if text != "" && got.String() != text {
			t.Errorf("%q is formatted as %q", text, got)
		}
	}
	for _, text := range []string{"49", "7x7", "5+7", "5+7x", "-1+7x7", "5+0x7", "5+7x7x7", "5 + 7x7",
		"05+7x7", "5+99999x7"} {
		if err := new(Tokens).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}
