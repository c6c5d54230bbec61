package model

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages/internal/modelfile"
)

// note reads an entry of metadata. Only the letters and digits of a key count; the entries of a dictionary
// are read separately.
func (r *declaration) note(key, value, source string) {
	v, ok := readLiteral(value)
	if !ok {
		v = strings.TrimSpace(value)
	}
	r.entry(key, v, source, 4)
}

func (r *declaration) entry(key string, v literal, source string, depth int) {
	name := letters(key)
	if read := noteReaders[name]; read != nil {
		read(r, v, source)
		return
	}
	if text, ok := v.(string); ok && depth > 0 { // JSON inside of JSON
		if inner, ok := readLiteral(text); ok {
			v = inner
		}
	}
	if d, ok := v.(pairs); ok && depth > 0 {
		for _, p := range d {
			r.entry(p.Key, p.Value, source, depth-1)
		}
	}
}

// letters returns the letters and digits of a key, in lower case: Image.NominalPixelRange and
// image_nominal_pixel_range are the same.
func letters(key string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			return c
		}
		return -1
	}, strings.ToLower(key))
}

// noteReaders read the entries that exporters and trainers write, by the letters of their keys.
var noteReaders = func() map[string]func(*declaration, literal, string) {
	out := map[string]func(*declaration, literal, string){}
	for keys, read := range map[string]func(*declaration, literal, string){
		"names classnames classes classlabels labels labelnames labelmap id2label label2id idxtoclass " +
			"idx2label indextoclass classtoidx label2idx categories categorynames targetnames character " +
			"characters charset vocab": (*declaration).readNames,
		"imgsz imgsize imagesize inputsize inputshape resolution cropsize " +
			"testinputsize": (*declaration).readSize,
		"imagebitmappixelformat colormode colororder colororders channelorder channelsorder colorformat " +
			"colorspace colorchannelorder pixelformat imageformat imagemode inputcolor inputcolororder " +
			"inputcolorspace": (*declaration).readOrder,
		"bgr tobgr swaprb reverseinputchannels rgbtobgr": readOrderFlag(modelfile.BGR, modelfile.RGB),
		"rgb torgb bgrtorgb doconvertrgb":                readOrderFlag(modelfile.RGB, modelfile.BGR),
		"imagenominalpixelrange pixelrange inputrange valuerange inputvaluerange inputpixelrange " +
			"imagerange": (*declaration).readRange,
		"layout dataformat inputlayout datalayout tensorlayout imagelayout inputformat " +
			"imagedataformat": (*declaration).readLayout,
		"mean imagemean inputmean meanvalues normmean pixelmean normalizemean meanrgb rgbmean " +
			"means normalisationmean": readNumbers(func(r *declaration) *stated { return &r.mean }),
		"std imagestd inputstd stdvalues scalevalues normstd pixelstd normalizestd stdrgb rgbstd stds " +
			"stddev normalisationstd": readNumbers(func(r *declaration) *stated { return &r.std }),
		"rescalefactor rescale scale inputscale pixelscale scalefactor": (*declaration).readFactor,
		"dorescale":   (*declaration).readRescales,
		"donormalize": (*declaration).readNormalises,
	} {
		for key := range strings.FieldsSeq(keys) {
			out[key] = read
		}
	}
	return out
}()

// readNames reads names as a list, as a dictionary of numbers and names, or as lines or words between commas.
func (r *declaration) readNames(v literal, source string) {
	switch v := v.(type) {
	case string:
		if inner, ok := readLiteral(v); ok {
			if _, text := inner.(string); !text {
				r.readNames(inner, source)
			}
			return
		}
		if strings.ContainsAny(v[:min(1, len(v))], "[{(") {
			return // cut off, or in an unknown language
		}
		separator := ","
		for _, s := range []string{"\n", "|", ";"} {
			if strings.Contains(v, s) {
				separator = s
				break
			}
		}
		if names := strings.Split(strings.Trim(v, separator+" \r"), separator); len(names) > 1 {
			r.names(trimmed(names), source)
		}
	case []literal:
		var names []string
		for _, e := range v {
			if _, nested := e.([]literal); nested || literalText(e) == "" {
				return
			}
			names = append(names, literalText(e))
		}
		r.names(trimmed(names), source)
	case pairs:
		r.names(numbered(v), source)
	}
}

func trimmed(names []string) []string {
	for i, n := range names {
		names[i] = strings.TrimSpace(n)
	}
	return names
}

// numbered returns the names to which a dictionary assigns the numbers 0, 1 …, or which it assigns to them;
// nil for other dictionaries.
func numbered(d pairs) []string {
	for _, reversed := range []bool{false, true} {
		names := make([]string, len(d))
		found := 0
		for _, p := range d {
			number, name := p.Key, literalText(p.Value)
			if reversed {
				number, name = name, number
			}
			i, err := strconv.Atoi(number)
			if err != nil || i < 0 || i >= len(d) || names[i] != "" || name == "" {
				break
			}
			names[i] = strings.TrimSpace(name)
			found++
		}
		if found == len(d) {
			return names
		}
	}
	return nil
}

// readSize reads a side, [height, width], [channels, height, width], [1, channels, height, width], the same
// with channels last, or a dictionary.
func (r *declaration) readSize(v literal, source string) {
	if d, ok := v.(pairs); ok {
		at := map[string]int{}
		for _, p := range d {
			if n := literalNumbers(p.Value); len(n) == 1 {
				at[letters(p.Key)] = int(n[0])
			}
		}
		h, w := at["height"], at["width"]
		if h == 0 && w == 0 {
			h, w = at["shortestedge"], at["shortestedge"]
		}
		r.sized(h, w, source)
		return
	}
	if text, ok := v.(string); ok {
		var list []literal
		for _, w := range strings.FieldsFunc(text, func(c rune) bool {
			return strings.ContainsRune("x×*, "+
				"", c)
		}) {
			n, err := strconv.Atoi(w)
			if err != nil {
				return
			}
			list = append(list, float64(n))
		}
		v = list
	}
	n := literalNumbers(v)
	if len(n) == 4 && n[0] <= 1 { // of a batch
		n = n[1:]
	}
	colours := func(c float64) bool { return c == 1 || c == 3 }
	switch {
	case len(n) == 1:
		r.sized(int(n[0]), int(n[0]), source)
	case len(n) == 2:
		r.sized(int(n[0]), int(n[1]), source)
	case len(n) == 3 && colours(n[0]):
		r.sized(int(n[1]), int(n[2]), source)
	case len(n) == 3 && colours(n[2]):
		r.sized(int(n[0]), int(n[1]), source)
	}
}

func (r *declaration) sized(h, w int, source string) {
	if limit := 1 << 16; h > 1 && w > 1 && h < limit && w < limit {
		r.size(h, w, source)
	}
}

// orders are words that name a channel order.
var orders = regexp.MustCompile(`(?i)(?:^|[^a-z])(rgb|bgr|gr[ae]y)(?:scale|a|x)?[0-9]*(?:[^a-z]|$)`)

func (r *declaration) readOrder(v literal, source string) {
	text := literalText(v)
	if list, ok := v.([]literal); ok { // ["R", "G", "B"]
		for _, e := range list {
			if word := literalText(e); word != "" {
				text += word[:1]
			}
		}
	}
	found := map[string]bool{}
	for _, m := range orders.FindAllStringSubmatch(text, -1) {
		found[strings.Replace(strings.ToLower(m[1]), "grey", "gray", 1)] = true
	}
	switch {
	case len(found) != 1: // none, or a conversion of one to the other
	case found["gray"]:
		r.grey(source)
	case found["bgr"]:
		r.order(modelfile.BGR, source)
	default:
		r.order(modelfile.RGB, source)
	}
}

func readOrderFlag(yes, no string) func(*declaration, literal, string) {
	return func(r *declaration, v literal, source string) {
		switch on, ok := truth(v); {
		case ok && on:
			r.order(yes, source)
		case ok:
			r.order(no, source)
		}
	}
}

func truth(v literal) (on, ok bool) {
	switch v := v.(type) {
	case bool:
		return v, true
	case float64:
		return v == 1, v == 0 || v == 1
	case string:
		on, err := strconv.ParseBool(strings.ToLower(v))
		return on, err == nil
	}
	return false, false
}

// ranges are the words of ONNX's metadata for images and of WinML.
var ranges = map[string][2]float64{
	"nominalrange0255": {0, 255}, "nominalrange16235": {16, 235}, "normalized01": {0, 1},
	"normalized11": {-1, 1}, "nominalrange01": {0, 1}, "nominalrange11": {-1, 1},
}

// numbersApart finds two numbers with "to", a comma, dots or a dash between them.
var numbersApart = regexp.MustCompile(
	`([-−]?\d+(?:\.\d+)?)\s*(?:,|;|\.\.+|…|-|–|to|and)\s*([-+−]?\d+(?:\.\d+)?)`)

func (r *declaration) readRange(v literal, source string) {
	if n := literalNumbers(v); len(n) == 2 {
		r.pixels(n[0], n[1], source)
		return
	}
	text := literalText(v)
	if b, ok := ranges[letters(text)]; ok {
		r.pixels(b[0], b[1], source)
	} else if black, white, ok := rangeIn(text); ok {
		r.pixels(black, white, source)
	}
}

func rangeIn(text string) (black, white float64, ok bool) {
	m := numbersApart.FindStringSubmatch(text)
	if m == nil {
		return 0, 0, false
	}
	for i, s := range m[1:] {
		v, err := strconv.ParseFloat(strings.Replace(s, "−", "-", 1), 64)
		if err != nil {
			return 0, 0, false
		}
		if i == 0 {
			black = v
		} else {
			white = v
		}
	}
	// Other pairs of numbers are sizes or versions.
	if black > 16 || black < -256 || !slices.Contains([]float64{1, 127, 128, 235, 255, 256}, white) {
		return 0, 0, false
	}
	return black, white, black < white
}

func (r *declaration) readLayout(v literal, source string) {
	switch text := letters(literalText(v)); {
	case text == "channelslast" || text == "channellast" || strings.Contains(text, "hwc"):
		r.layout(modelfile.NHWC, source)
	case text == "channelsfirst" || text == "channelfirst" || strings.Contains(text, "chw"):
		r.layout(modelfile.NCHW, source)
	}
}

// readNumbers reads a number, or one for each colour.
func readNumbers(of func(*declaration) *stated) func(*declaration, literal, string) {
	return func(r *declaration, v literal, source string) {
		if text, ok := v.(string); ok {
			var list []literal
			for _, w := range strings.FieldsFunc(text, func(c rune) bool {
				return strings.ContainsRune(", "+
					";", c)
			}) {
				n, err := strconv.ParseFloat(w, 64)
				if err != nil {
					return
				}
				list = append(list, n)
			}
			v = list
		}
		n := literalNumbers(v)
		if s := of(r); s.v == nil && (len(n) == 1 || len(n) == 3) {
			*s = stated{n, source}
		}
	}
}

// readFactor reads the factor of bytes. A factor above 1 could be meant for pixels in [0,1], or be a
// divisor.
func (r *declaration) readFactor(v literal, source string) {
	n := literalNumbers(v)
	if len(n) != 1 || !(n[0] > 0 && n[0] <= 0.1) || r.scale.v != nil {
		return
	}
	scale := 255 * n[0]
	if math.Abs(scale-1) < 1e-3 {
		scale = 1 // 1/255, rounded
	}
	r.scale = stated{[]float64{scale}, source}
}

func (r *declaration) readRescales(v literal, source string) {
	if on, ok := truth(v); ok && !on {
		r.scale = stated{[]float64{255}, source}
	}
}

func (r *declaration) readNormalises(v literal, source string) {
	if on, ok := truth(v); ok {
		r.normalise = &on
	}
}
