package model

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages/internal/classname"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// Declared is what an ONNX file says in words about its images and classes: in its metadata, in the
// descriptions of its input and output, and in the labels of a ZipMap. Nothing of it follows from running the
// model, and what the file doesn't say is left zero.
type Declared struct {
	Names    []string `json:"names,omitempty"`    // of the classes, in the order of the output
	Order    string   `json:"order,omitempty"`    // rgb or bgr
	Channels int      `json:"channels,omitempty"` // 1 for a grey image, 3 for a coloured one
	Layout   string   `json:"layout,omitempty"`   // nchw or nhwc

	// A pixel v in [0,1] is fed as (v·Scale − Mean)/Std, with numbers for red, green, blue or one for all;
	// Scale is 0 where the file doesn't say it.
	Scale float64   `json:"scale,omitempty"`
	Mean  []float64 `json:"mean,omitempty"`
	Std   []float64 `json:"std,omitempty"`

	Height int `json:"height,omitempty"`
	Width  int `json:"width,omitempty"`

	Said      []Said   `json:"said,omitempty"`      // every statement, in the order of the file
	Conflicts []string `json:"conflicts,omitempty"` // statements that contradict each other; the first counts
}

// Said is a statement of a file about one thing: names, order, layout, range or size.
type Said struct {
	About  string `json:"about"`
	Text   string `json:"text"`   // such as "blue comes first"
	Source string `json:"source"` // such as `metadata "Image.BitmapPixelFormat" is "Bgr8"`
}

func (s Said) String() string { return s.Text + ": " + s.Source }

// Range returns what a black and a white pixel are fed as, over all channels; false where the file doesn't
// say it.
func (d Declared) Range() (black, white float64, ok bool) {
	if d.Scale == 0 {
		return 0, 0, false
	}
	black, white = math.Inf(1), math.Inf(-1)
	for c := range max(len(d.Mean), len(d.Std)) {
		mean, std := d.Mean[c%len(d.Mean)], d.Std[c%len(d.Std)]
		black, white = min(black, (0-mean)/std), max(white, (d.Scale-mean)/std)
	}
	return black, white, true
}

// IsZero reports whether the file says nothing that could be understood.
func (d Declared) IsZero() bool { return len(d.Said) == 0 }

// With returns the lines of parameters of model/onnx that feed pixels as the file says; what it doesn't say
// is as in the preset with this name.
func (d Declared) With(preset string) []string {
	p, ok := modelfile.PresetNamed(preset)
	if !ok {
		p, _ = modelfile.PresetNamed("raw")
	}
	told := d.Scale != 0
	if told {
		p = d.nearest(p.Name)
	}
	lines := []string{"preset: " + p.Name}
	if d.Order != "" && d.Order != p.Order {
		lines = append(lines, "order: "+d.Order)
	}
	if told && !d.feedsAs(p) {
		lines = append(lines, fmt.Sprintf("scale: %v", d.Scale), "mean: "+listed(d.Mean),
			"std: "+listed(d.Std))
	}
	return lines
}

// nearest returns the preset that feeds pixels as the file says, preferably that with the given name, or in
// its order of channels; raw where there is none.
func (d Declared) nearest(preferred string) modelfile.Preset {
	best, _ := modelfile.PresetNamed("raw")
	most := 0
	for _, p := range modelfile.Presets() {
		if !d.feedsAs(p) {
			continue
		}
		fit := 1
		if p.Order == d.Order {
			fit += 2
		}
		if p.Name == preferred {
			fit++
		}
		if fit > most {
			best, most = p, fit
		}
	}
	return best
}

// feedsAs reports whether a preset makes the same of a pixel, but for the order of channels.
func (d Declared) feedsAs(p modelfile.Preset) bool {
	return d.same(p.Scale, p.Mean, p.Std, 1e-3)
}

// same reports whether black and white pixels are fed as the file says, up to a part of their distance.
func (d Declared) same(scale float64, mean, std []float64, part float64) bool {
	for c := range 3 {
		m, s := mean[c%len(mean)], std[c%len(std)]
		m2, s2 := d.Mean[c%len(d.Mean)], d.Std[c%len(d.Std)]
		most := part * d.Scale / s2
		if math.Abs(m/s-m2/s2) > most || math.Abs((scale-m)/s-(d.Scale-m2)/s2) > most {
			return false
		}
	}
	return true
}

func listed(v []float64) string {
	if len(v) == 1 {
		return fmt.Sprint(v[0])
	}
	var out []string
	for _, x := range v {
		out = append(out, fmt.Sprint(x))
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// contradictions tells where what a model is fed, or what its classes are called, isn't what the file says.
func (d Declared) contradictions(p ONNXParams, s modelfile.Spec, labels string) (out []string) {
	says := func(about string) string {
		i := slices.IndexFunc(d.Said, func(s Said) bool { return s.About == about })
		return fmt.Sprintf("the file says that %s (%s)", d.Said[i].Text, d.Said[i].Source)
	}
	by := "preset " + p.Preset
	if d.Order != "" && s.Channels == 3 && d.Order != s.Order {
		if p.Order != "auto" {
			by = "order " + p.Order
		}
		first := map[string]string{modelfile.RGB: "red", modelfile.BGR: "blue"}[s.Order]
		out = append(out, fmt.Sprintf("%s; with %s %s comes first", says("order"), by, first))
	}
	if d.Scale != 0 && s.Channels == 3 && !d.same(s.Scale, s.Mean, s.Std, 0.02) {
		black, white, _ := Declared{Scale: s.Scale, Mean: s.Mean, Std: s.Std}.Range()
		out = append(out, fmt.Sprintf("%s; with preset %s and what overrides it they are fed as %.4g to %.4g",
			says("range"), p.Preset, black, white))
	}
	if d.Layout != "" && d.Layout != s.Layout {
		out = append(out, fmt.Sprintf("%s; the layout is %s", says("layout"), s.Layout))
	}
	if d.Names == nil {
		return out
	}
	names := d.classNames(s)
	if names == nil {
		return append(out, fmt.Sprintf("%s; the model has %d classes, so the names aren't used",
			says("names"), s.Classes))
	}
	for i, name := range strings.Split(labels, "\n") {
		if own := names[i]; labels != "" && !sameClass(own, name) {
			return append(out, fmt.Sprintf("%s; class %d is %q there and %q in labels", says("names"), i,
				own, name))
		}
	}
	return out
}

// classNames returns the names that the file gives a model's classes, each a line; nil if it doesn't give as
// many as there are.
func (d Declared) classNames(s modelfile.Spec) []string {
	names := slices.Clone(d.Names)
	if s.Sides && len(names) == 1 {
		names, _ = sidesNamed(names)
	}
	if len(names) != s.Classes {
		return nil
	}
	for i, n := range names {
		names[i] = strings.Join(strings.Fields(n), " ")
	}
	return names
}

// sameClass reports whether two names may be those of one class.
func sameClass(a, b string) bool {
	a, b = letters(a), letters(b)
	return a == b || a == "" || b == "" || classname.Is(a, b) || classname.Is(b, a) ||
		strings.Contains(a, b) || strings.Contains(b, a)
}

// declaredOf reads what a model says of its classes and of the input that takes images, "" for the only one.
func declaredOf(m *onnx.Model, input string) Declared {
	var r declaration
	for _, n := range m.Notes() {
		r.note(n.Key, n.Value, fmt.Sprintf("metadata %q is %s", n.Key, excerpt(n.Value)))
	}
	g := m.Proto.Graph
	if in, err := pick(m.Inputs(), input, "input", false); err == nil {
		i := slices.IndexFunc(g.Input, func(v *onnxpb.ValueInfoProto) bool { return v.Name == in.Name })
		r.input(g.Input[i])
	}
	labelsOfNodes(&r, g.Node)
	r.feed()
	return r.Declared
}

// A declaration collects what a file says.
type declaration struct {
	Declared
	scale     stated // what a byte is multiplied by, times 255
	mean, std stated
	normalise *bool // whether mean and std count; nil where that isn't said
}

// stated are numbers and where they are stated.
type stated struct {
	v      []float64
	source string
}

// say records a statement. What was said before stays; said differently, the two are a conflict.
func (r *declaration) say(about, text, source string, first bool) bool {
	for _, s := range r.Said {
		if s.About != about {
			continue
		}
		if s.Text != text {
			r.Conflicts = append(r.Conflicts, fmt.Sprintf("%s, but %s", s, Said{about, text, source}))
		}
		return false
	}
	r.Said = append(r.Said, Said{about, text, source})
	return first
}

func (r *declaration) order(order, source string) {
	text := map[string]string{modelfile.RGB: "red comes first", modelfile.BGR: "blue comes first"}[order]
	if r.say("order", text, source, true) {
		r.Order, r.Channels = order, 3
	}
}

func (r *declaration) grey(source string) {
	if r.say("order", "images are grey", source, true) {
		r.Channels = 1
	}
}

func (r *declaration) layout(layout, source string) {
	text := map[string]string{modelfile.NCHW: "channels come before places (nchw)",
		modelfile.NHWC: "channels come behind places (nhwc)"}[layout]
	if r.say("layout", text, source, true) {
		r.Layout = layout
	}
}

func (r *declaration) size(h, w int, source string) {
	if r.say("size", fmt.Sprintf("images have %d×%d pixels", h, w), source, true) {
		r.Height, r.Width = h, w
	}
}

func (r *declaration) names(names []string, source string) {
	if len(names) == 0 {
		return
	}
	const shown = 3
	text := strings.Join(names[:min(shown, len(names))], ", ")
	if len(names) > shown {
		text += " …"
	}
	if r.say("names", fmt.Sprintf("%d classes are named %s", len(names), printable(text)), source, true) {
		r.Names = names
	}
}

// pixels records what a black and a white pixel are fed as.
func (r *declaration) pixels(black, white float64, source string) {
	if !(black < white) {
		return
	}
	s := white - black
	mean, std := 0-black, 1.0
	if black == -1 && white == 1 { // as in the preset half
		s, mean, std = 1, 0.5, 0.5
	}
	r.fed(s, []float64{mean}, []float64{std}, source)
}

func (r *declaration) fed(scale float64, mean, std []float64, source string) {
	d := Declared{Scale: scale, Mean: mean, Std: std}
	text := ""
	if black, white, _ := d.Range(); len(mean) == 1 && len(std) == 1 {
		text = fmt.Sprintf("pixels are fed as %.4g to %.4g", black, white)
	} else {
		text = fmt.Sprintf("pixels are fed as (pixel·%.4g − %.4g)/%.4g", scale, mean, std)
	}
	if r.say("range", text, source, true) {
		r.Scale, r.Mean, r.Std = scale, mean, std
	}
}

// feed makes a range of the mean, deviation and factor that were stated.
func (r *declaration) feed() {
	mean, std := r.mean.v, r.std.v
	sources := slices.DeleteFunc([]string{r.scale.source, r.mean.source, r.std.source},
		func(s string) bool { return s == "" })
	source := strings.Join(slices.Compact(sources), "; ")
	if r.normalise != nil && !*r.normalise {
		mean, std = nil, nil
	}
	if mean == nil && std == nil && r.scale.v == nil {
		return
	}
	given := append(slices.Clone(mean), std...)
	largest := 0.0
	for _, v := range given {
		largest = max(largest, math.Abs(v))
	}
	scale := 0.0
	switch {
	case r.scale.v != nil:
		scale = r.scale.v[0]
	case largest > 1.5: // numbers of bytes
		scale = 255
	case slices.ContainsFunc(given, func(v float64) bool { return v != 0 && v != 1 }):
		scale = 1
	default:
		return // 0 and 1 don't tell what they count
	}
	if mean == nil {
		mean = []float64{0}
	}
	if std == nil {
		std = []float64{1}
	}
	if slices.ContainsFunc(std, func(v float64) bool { return !(v > 0) }) {
		return
	}
	if slices.Max(mean) > 1.01*scale { // it is subtracted from bytes, before these are multiplied
		std = slices.Clone(std)
		for i := range std {
			std[i] *= 255 / scale
		}
		scale = 255
	}
	if r.Order == modelfile.BGR { // statistics are listed in the order in which channels are fed
		mean, std = slices.Clone(mean), slices.Clone(std)
		slices.Reverse(mean)
		slices.Reverse(std)
	}
	r.fed(scale, mean, std, source)
}

// note reads an entry of metadata. A key counts by its letters alone; the entries of a dictionary count as
// entries of their own.
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
// image_nominal_pixel_range are one.
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
			return // cut off, or in a language that isn't known
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

// numbered returns the names that a dictionary gives the numbers 0, 1 …, or gives these numbers to; nil for
// other dictionaries.
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

// readFactor reads what bytes are multiplied by. A factor above 1 could be meant for pixels in [0,1], or be a
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

// input reads the description of an input, and what its dimensions are said to mean.
func (r *declaration) input(v *onnxpb.ValueInfoProto) {
	_, meanings := onnx.Denotation(v)
	for i, meaning := range meanings {
		if len(meanings) == 4 && meaning == "DATA_CHANNEL" {
			source := fmt.Sprintf("dimension %d of input %q is denoted DATA_CHANNEL", i, v.Name)
			switch i {
			case 1:
				r.layout(modelfile.NCHW, source)
			case 3:
				r.layout(modelfile.NHWC, source)
			}
		}
	}
	if layout, source := layoutByNames(v); layout != "" {
		r.layout(layout, source)
	}
	doc := onnx.Doc(v)
	if doc == "" {
		return
	}
	source := fmt.Sprintf("input %q is described as %s", v.Name, excerpt(doc))
	r.readOrder(doc, source)
	if black, white, ok := rangeIn(doc); ok {
		r.pixels(black, white, source)
	}
	if strings.Contains(strings.ToUpper(doc), "NHWC") != strings.Contains(strings.ToUpper(doc), "NCHW") {
		r.readLayout(doc, source)
	}
}

// layoutByNames returns the layout that the names of an input's open dimensions tell.
func layoutByNames(v *onnxpb.ValueInfoProto) (layout, source string) {
	dims := v.GetType().GetTensorType().GetShape().GetDim()
	if len(dims) != 4 {
		return "", ""
	}
	kind := func(i int) byte {
		switch letters(dims[i].GetDimParam()) {
		case "c", "channel", "channels", "numchannels", "inputchannels":
			return 'c'
		case "h", "height", "inputheight", "imageheight", "w", "width", "inputwidth", "imagewidth":
			return 's'
		}
		return 0
	}
	source = fmt.Sprintf("dimensions of input %q are named so", v.Name)
	switch {
	case kind(1) == 'c' || kind(1) != 's' && kind(2) == 's' && kind(3) == 's':
		return modelfile.NCHW, source
	case kind(3) == 'c' || kind(3) != 's' && kind(1) == 's' && kind(2) == 's':
		return modelfile.NHWC, source
	}
	return "", ""
}

// labelsOfNodes reads the names that nodes of ONNX's operators for classical learning give to classes.
func labelsOfNodes(r *declaration, nodes []*onnxpb.NodeProto) {
	for _, proto := range nodes {
		n := onnx.Node{NodeProto: proto}
		if n.Domain != "ai.onnx.ml" {
			continue
		}
		for _, attr := range []string{"classlabels_strings", "classes_strings"} {
			r.names(n.Texts(attr), fmt.Sprintf("%s of node %s", attr, n.Label()))
		}
	}
}

// excerpt quotes the beginning of a text.
func excerpt(text string) string {
	const shown = 60
	if r := []rune(text); len(r) > shown {
		text = string(r[:shown]) + "…"
	}
	return strconv.Quote(text)
}
