package relevance

// Everywhere returns a with all scales of its definition and no others.
func (a AbsLRP) Everywhere() AbsLRP {
	a.everywhere = true
	return a
}
