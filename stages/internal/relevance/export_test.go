package relevance

// Everywhere returns a with the scales of its definition, all of them and no others.
func (a AbsLRP) Everywhere() AbsLRP {
	a.everywhere = true
	return a
}
