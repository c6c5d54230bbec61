package model

// A Candidate is an output that has a number per image and class.
type Candidate struct {
	Output  string   `json:"output"` // its name in the file
	Classes int      `json:"classes"`
	Shape   []string `json:"shape"`           // as the file declares it, or as it was measured
	Names   []string `json:"names,omitempty"` // of the classes, where a ZipMap has them
	Why     string   `json:"why"`             // what its numbers are taken for, and on what grounds
}
