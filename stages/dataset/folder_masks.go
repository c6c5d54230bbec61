package dataset

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/picture"
)

// Values are values of a mask's pixels: numbers and ranges of numbers, as "1, 3-5", or "alpha", the pixels
// that aren't transparent. The zero Values are none.
type Values string

// inAlpha are the Values of a mask whose object is the opaque pixels.
const inAlpha Values = "alpha"

// MarshalText formats v as in an experiment file.
func (v Values) MarshalText() ([]byte, error) {
	if v == "" {
		return []byte("none"), nil
	}
	return []byte(v), nil
}

// UnmarshalText parses "none", "1", "[1, 3-5]" or "alpha".
func (v *Values) UnmarshalText(b []byte) error {
	text := strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(string(b), "["), "]"), " ", "")
	*v = Values(text)
	switch text {
	case "none", "":
		*v = ""
		return nil
	case string(inAlpha):
		return nil
	}
	if _, err := v.ranges(); err != nil {
		return fmt.Errorf("%q isn't values of pixels: expected numbers and ranges such as 1, [1, 3] or "+
			"[1-254], up to 65535", b)
	}
	*v = Values(strings.ReplaceAll(text, ",", ", "))
	return nil
}

// ranges returns the first and the last number of each range.
func (v Values) ranges() (list [][2]uint16, err error) {
	if v == "" || v == inAlpha {
		return nil, nil
	}
	for _, part := range strings.Split(string(v), ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			last = first
		}
		a, errA := strconv.ParseUint(first, 10, 16)
		b, errB := strconv.ParseUint(last, 10, 16)
		if errA != nil || errB != nil || a > b {
			return nil, strconv.ErrSyntax
		}
		list = append(list, [2]uint16{uint16(a), uint16(b)})
	}
	return list, nil
}

// A maskRule says which values of a mask's pixels are the object, and which don't count.
type maskRule struct {
	object, ignore [][2]uint16
	alpha          bool // the object is the opaque pixels
}

func (p FolderParams) maskRule() maskRule {
	object, _ := p.Object.ranges() // checked when they were parsed
	ignore, _ := p.Ignore.ranges()
	return maskRule{object, ignore, p.Object == inAlpha}
}

func contains(ranges [][2]uint16, v uint16) bool {
	return slices.ContainsFunc(ranges, func(r [2]uint16) bool { return r[0] <= v && v <= r[1] })
}

// kind returns the meaning of a value: 1, 0 or [stages.Ignored].
func (r maskRule) kind(v uint16) uint8 {
	switch {
	case contains(r.ignore, v):
		return stages.Ignored
	case r.object != nil && contains(r.object, v), r.object == nil && v != 0:
		return 1
	}
	return 0
}

// apply returns the pixels of a mask under the rule. Without a rule it returns an error if the mask's
// values are ambiguous.
func (r maskRule) apply(m *picture.Indices) (*picture.RGB, error) {
	pix := m.Pix
	switch {
	case r.alpha && m.Alpha == nil:
		return nil, &unclearMask{"its alpha channel is the same everywhere, and object: alpha takes the " +
			"object from it"}
	case r.alpha:
		pix = m.Alpha
	default:
		if err := r.clear(m); err != nil {
			return nil, err
		}
	}
	out := picture.NewRGB(m.W, m.H)
	var known [1 << 16]uint8 // the kind of a value, plus 1
	for i, v := range pix {
		if known[v] == 0 {
			known[v] = r.kind(v) + 1
		}
		k := known[v] - 1
		out.Pix[3*i], out.Pix[3*i+1], out.Pix[3*i+2] = k, k, k
	}
	return out, nil
}

// An unclearMask is the error of a mask with ambiguous values.
type unclearMask struct{ text string }

func (e *unclearMask) Error() string { return e.text }

// A mask with more values than fewValues has the grey edges of an object that was drawn smoothly; with
// fewer, the values are numbers of classes or parts.
const fewValues = 8

// clear rejects masks that the default may misread: a trimap, whose background has a number as well; VOC's,
// where 255 is the border of objects; and masks with the object in the alpha channel.
func (r maskRule) clear(m *picture.Indices) error {
	if r.object != nil {
		return nil
	}
	values := valuesOf(m)
	rest := slices.DeleteFunc(slices.Clone(values), func(v uint16) bool { return contains(r.ignore, v) })
	const say = "object: and ignore: say which values are the object and which don't count"
	switch {
	case len(rest) > 0 && rest[0] != 0 && m.Alpha != nil:
		return &unclearMask{fmt.Sprintf("its colours have no background, but its alpha channel differs "+
			"from pixel to pixel: object: alpha takes the object from it; else %s", say)}
	case len(rest) > 1 && rest[0] != 0:
		return &unclearMask{fmt.Sprintf("no pixel of it is 0, the background, and its values are %s, as in "+
			"a trimap: %s", listed(values), say)}
	case len(rest) > 2 && (len(rest) <= fewValues || m.Palette) && slices.Contains(rest, 255):
		return &unclearMask{fmt.Sprintf("its values are %s, and 255 may be a border that doesn't count, as "+
			"in VOC's masks: %s; ignore: 255, or object: 1-255", listed(values), say)}
	}
	return nil
}

// valuesOf returns the values of a mask's pixels, sorted.
func valuesOf(m *picture.Indices) (values []uint16) {
	var seen [1 << 16]bool
	for _, v := range m.Pix {
		seen[v] = true
	}
	for v, there := range seen {
		if there {
			values = append(values, uint16(v))
		}
	}
	return values
}

// listed lists values in words.
func listed(values []uint16) string {
	var list []string
	for i, v := range values {
		if i == fewValues {
			return fmt.Sprintf("%s and %d more", strings.Join(list, ", "), len(values)-i)
		}
		list = append(list, strconv.Itoa(int(v)))
	}
	if n := len(list); n > 1 {
		return strings.Join(list[:n-1], ", ") + " and " + list[n-1]
	}
	return strings.Join(list, "")
}
