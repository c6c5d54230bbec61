package stages

// A Variant is one place where the paper that defines a stage and the authors' own code disagree, or where a
// choice between published definitions had to be made. Parameters choose between them; this is what the
// reference says of it.
type Variant struct {
	Item    string // what is concerned: "normalisation of the curve"
	Default string // the value of the parameter variant that is taken unasked: "paper", "official"
	Differs string // one sentence: what the other values compute instead
	Golden  string // the test data that pins it down, "" if there is none
}
