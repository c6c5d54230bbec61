package stages

// A Type is what may travel through a port. The engine refuses an edge whose ends differ.
type Type struct {
	Name  string
	Items bool // a sequence of items, rather than one value
	Form  Form // how its payloads are encoded, and so how they're exported
}

// A Form is an encoding of payloads.
type Form int

const (
	FormTensor Form = iota // [Tensor]
	FormTable              // [Table]
	FormFile               // a file's bytes; the fact "ext" says of which kind
)

// The types of ports. An item's payload is a tensor of the stated kind and shape.
var (
	Images  = Type{"images", true, FormTensor} // u8 or f32 [3,H,W], RGB; f32 in [0,1], u8 means v/255
	Targets = Type{"targets", true,
		FormTensor} // i64 [1], the explained class; [2] explains class 0 minus class 1
	Labels = Type{"labels", true, FormTensor} // i64 [1]
	Masks  = Type{"masks", true, FormTensor}  // u8 [H,W], 1 on the object
	Boxes  = Type{"boxes", true, FormTensor}  // f32 [n,4], left, top, right, bottom in pixels
	Maps   = Type{"maps", true, FormTensor}   // f32 or f64 [H,W] or [C,H,W], signed
	Ranks  = Type{"ranks", true,
		FormTensor} // u32 [H,W], a permutation: 0 is removed first; [0,0] where a map has no order
	Curves = Type{"curves", true,
		FormTensor} // f64 [responses, steps+1], responses named by the fact "responses", NaN where undefined
	Scores = Type{"scores", true, FormTensor} // f64 [1], NaN where undefined

	Model     = Type{"model", false, FormFile}
	TableType = Type{"table", false, FormTable}
	Figure    = Type{"figure", false, FormFile} // "ext" is png or svg
	Text      = Type{"text", false, FormFile}   // "ext" is md
)

// Types lists every type, sorted by name.
func Types() []Type {
	return []Type{Boxes, Curves, Figure, Images, Labels, Maps, Masks, Model, Ranks, Scores, TableType,
		Targets, Text}
}

// A Port is a typed input or output of a stage.
type Port struct {
	Name     string
	Type     Type
	Doc      string
	Optional bool // inputs: may stay unwired

	// Via names a stage that the engine puts between the edge and this input: the input gets what that stage
	// makes of the wired output. The stage in between has one input of the edge's type, and one output of
	// this port's type. Its parameters of the same names as the consumer's take their values. Equal results
	// of it are one input to whatever comes after.
	Via string

	// Else names a stage that fills this input when it isn't wired. That stage's inputs get the consumer's
	// edges of the same names; item edges are followed upstream to the stage that made the items from
	// sources, so that what it says of an item holds for everything derived from that item.
	Else string

	// Accepts is the type that may be wired when Via is set: the type the stage in between takes. It is Type
	// otherwise.
	Accepts *Type
}

// Wire returns the type that an edge to this input must have.
func (p *Port) Wire() Type {
	if p.Accepts != nil {
		return *p.Accepts
	}
	return p.Type
}
