package stages

// A Variant documents where the paper that defines a stage and its authors' code disagree, or where published
// definitions differ. A parameter chooses between them.
type Variant struct {
	Item    string // the difference: "normalisation of the curve"
	Default string // the default of the parameter variant: "paper", "official"
	Differs string // one sentence: the other values compute this instead
	Golden  string // the test data that verifies it, or ""
}
