package stages

// A Type is the type of the data that a port carries. The engine rejects an edge whose ends differ in type.
type Type struct {
	Name  string
	Items bool // a sequence of items rather than one value
	Form  Form // how its payloads are encoded, and therefore exported
}

// A Form is an encoding of payloads.
type Form int

const (
	FormTensor Form = iota // [Tensor]
	FormTable              // [Table]
	FormFile               // a file's bytes; the fact "ext" is its extension
)

// The types of ports. An item's payload is a tensor of the given element type and shape.
var (
	// u8 or f32 [3,H,W], RGB; f32 in [0,1], u8 means v/255.
	Images = Type{"images", true, FormTensor}
	// What is known of an item besides, as JSON: [ItemColumns]. The fact "columns" lists the columns' names,
	// a line each.
	Columns = Type{"columns", true, FormFile}
	// i64 [3,n], a text of n tokens, without padding: their ids, their types, and 1 for a special token that
	// the tokeniser added, such as [CLS], else 0. The facts "pad" and "mask" are the ids of the tokens that
	// fill up and that hide, absent where a tokeniser has none; "vocabulary" is the number of its ids.
	Tokens = Type{"tokens", true, FormTensor}
	// A text to read, as JSON: [Words], in the order of the tokens. The fact "ext" is json.
	WordsType = Type{"words", true, FormFile}
	// i64 [1], the explained class; [2] explains class 0 minus class 1; [3] has the head of the model in
	// addition, and -1 where no class is subtracted. f32 [n] for a model whose answer is
	// an expression: what it freezes of the original image.
	Targets = Type{"targets", true, FormTensor}
	// i64 [1].
	Labels = Type{"labels", true, FormTensor}
	// u8 [H,W], 1 on the object, [Ignored] where a pixel doesn't count, else 0.
	Masks = Type{"masks", true, FormTensor}
	// u32 or u8 [H,W], the number of each pixel's segment: any numbers.
	Segments = Type{"segments", true, FormTensor}
	// f32 [n,4]: left, top, right, bottom in pixels.
	Boxes = Type{"boxes", true, FormTensor}
	// f32 or f64 [H,W] or [C,H,W], signed.
	Maps = Type{"maps", true, FormTensor}
	// u8 [H,W], a reduced map: 1 to 255, linear between its [Ends]; 0 if it is undefined.
	Thumbnails = Type{"thumbnails", true, FormTensor}
	// f64 [2], the values of the levels 1 and 255 of a thumbnail, NaN if it is undefined.
	Ends = Type{"ends", true, FormTensor}
	// u32 [H,W], the rank of each pixel, or of its region or segment: 0 is removed first; [0,0] if the map
	// has no order.
	Ranks = Type{"ranks", true, FormTensor}
	// u8 [C,H,W], the step at which an element of the normalised image is removed, from 1; 0 for never.
	Removals = Type{"removals", true, FormTensor}
	// u8 [R, ⌈M/8⌉], R subsets of the M units that are numbered on the port segments: bit k of a row, counted
	// from the highest bit of its first byte, is set if unit k is replaced.
	Subsets = Type{"subsets", true, FormTensor}
	// f64 [responses, R+2]: of the image, of the image with each of R subsets replaced, and of the image
	// replaced wholly. The fact "responses" names the first axis.
	Responses = Type{"responses", true, FormTensor}
	// f32 [C,H,W], the normalised image minus what replaces it; [n,C,H,W] where it is replaced n times by
	// other values.
	Differences = Type{"differences", true, FormTensor}
	// f64 [responses, points], NaN where undefined; the fact "responses" names the first axis. The fact
	// "shares" lists the fraction of the pixels replaced at each point, "0,0.1,0.5"; without it steps have
	// equal size.
	Curves = Type{"curves", true, FormTensor}
	// f64 [4], how far a model moves from an image to an altered one: the relative change of the input, the
	// change of the outputs, the relative change of a layer, and 1 if the prediction stays, otherwise 0.
	Changes = Type{"changes", true, FormTensor}
	// f64 [1], NaN where undefined.
	Scores = Type{"scores", true, FormTensor}

	Model = Type{"model", false, FormFile}
	// u8 or f32 [n,3,H,W], images of one size that every item is compared with.
	Background = Type{"background", false, FormTensor}
	TableType  = Type{"table", false, FormTable}
	// A table of an experiment's claims and their results. It is published as a table, but no stage accepts
	// it as one.
	Claims = Type{"claims", false, FormTable}
	Figure = Type{"figure", false, FormFile} // "ext" is svg, png, pdf or tex
	Text   = Type{"text", false, FormFile}   // "ext" is md
)

// Ignored is the value of a mask's pixels that count neither as the object nor as its surroundings, such as
// its border in PASCAL VOC.
const Ignored uint8 = 255

// A Port is a typed input or output of a stage.
type Port struct {
	Name     string
	Type     Type
	Doc      string
	Optional bool // inputs: may be left unwired

	// Over lets over collapse axes on this input of items of an Each stage: a call then has a member
	// from every collapsed cell, with its coordinates, and reads them by [Env.All].
	Over bool

	// Averages, of an input of scores or curves of a Whole stage, counts cells that differ in their seeds
	// alone as one: they have one [Data.Coord], and are averaged, item by item.
	Averages bool

	// Added marks an optional input that isn't part of any key unless it is wired, so that results made
	// before the input was added keep their keys.
	Added bool
	// Version, of an added input, rises when what the stage makes of it changes: results without it keep
	// their keys, which a higher [Def.Version] would move.
	Version int

	// Via names a stage that the engine inserts between the edge and this input. It has one input of the
	// edge's type and one output of this port's type; its parameters take the values of the consumer's
	// parameters of the same name. Equal results of the inserted stage count as one input downstream.
	Via string
	// ViaIf, if set, reports for a cell's parameters whether Via applies.
	ViaIf func(params any) bool

	// Else names a stage that feeds this input if it isn't wired. That stage's inputs get the consumer's
	// edges of the same name. Item edges are followed upstream to the stage that made the items from sources,
	// so that one result holds for everything derived from an item, unless Own is set: the stage then reads
	// the items that the consumer reads.
	Else string
	Own  bool

	// Beside names another input of the same stage. If this one isn't wired, it is fed by the cells that feed
	// the other one, from their output of this port's type.
	Beside string

	// Again, of an optional input of scores, has the engine compute another input's cells again for some
	// items, with another value of a parameter.
	Again *Again

	// SameTarget names another input of the same stage. What the stages on both declare as "target", the
	// explained class, must be equal if both do.
	SameTarget string

	// Texts marks an input of images that takes [Tokens] in their place, as images of one row and a column
	// for each token. An experiment may call the input images then texts.
	Texts bool
	// NotTexts, of an input of images that takes no texts, is why, and what to use: "tokens can't be blurred:
	// use …".
	NotTexts string

	// Base, of an output, names the input to whose payload this port's payload refers by its digest, as a
	// rewritten model refers to the original model. A reader of the port finds that payload in [Data.Base].
	Base string

	// Accepts is the type that may be wired if Via is set: the input type of the inserted stage. Otherwise it
	// is nil and Type applies.
	Accepts *Type
}

// Again describes a second computation of the cells on an input of a Whole stage, for a part of their items.
// These cells are copied, and the itemwise cells that they read, up to the farthest that has the parameter
// with another value: with the value that is wanted, and for the items that a stage draws.
type Again struct {
	Of    string // the input whose cells are computed again
	Param string // the name of the parameter of cells that is replaced
	As    string // the consumer's parameter with the value; nothing is computed while it is empty
	// From is the consumer's parameter, a text, that takes the values that are replaced; "" for none.
	From string
	// Draw is the stage that draws items: some of those on an input of their type, which it passes to its
	// output of this type. Its parameters take the values of the consumer's parameters of the same name.
	Draw string
	// Count is the consumer's parameter with the number of items that are drawn; "" if Size says it.
	Count string
	// Takes has, by parameter of Draw or Size, the consumer's parameter that it takes, where that has another
	// name; nil for none.
	Takes map[string]string
	// Size is the stage whose table is the size of the draw, on the input size of Draw; "" for none. It has
	// inputs scores, fed as Of is, and one called as the input After of the consumer, fed as that.
	Size, After string
}

// TextsName is another name of the input images with [Port.Texts] or [Port.NotTexts].
const TextsName = "texts"

// Takes reports whether an edge of a type may be wired to this input.
func (p *Port) Takes(t Type) bool { return t.Name == p.Wire().Name || p.Texts && t.Name == Tokens.Name }

// Called reports whether an experiment may call this input so.
func (p *Port) Called(name string) bool {
	return name == p.Name || (p.Texts || p.NotTexts != "") && p.Name == "images" && name == TextsName
}

// TypeText names what the input takes, for people.
func (p *Port) TypeText() string {
	if p.Texts {
		return p.Wire().Name + " or " + Tokens.Name
	}
	return p.Wire().Name
}

// Wire returns the type required of an edge to this input.
func (p *Port) Wire() Type {
	if p.Accepts != nil {
		return *p.Accepts
	}
	return p.Type
}
