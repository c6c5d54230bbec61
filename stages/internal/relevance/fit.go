package relevance

// Supported reports whether relevance can flow through an operator of ONNX, or is known to stop at it.
func Supported(opType string) bool {
	for _, o := range All() {
		if o.Type == opType {
			return true
		}
	}
	return false
}
