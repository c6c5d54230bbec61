package plan

// A slab hands out pieces of large blocks: ten thousand cells are made of tens
// of allocations.
type slab[T any] struct{ free []T }

const slabSize = 1024

func (s *slab[T]) take(n int) []T {
	if n == 0 {
		return nil
	}
	if n > len(s.free) {
		s.free = make([]T, max(n, slabSize))
	}
	out := s.free[:n:n]
	s.free = s.free[n:]
	return out
}
