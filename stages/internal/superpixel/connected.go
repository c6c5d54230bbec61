package superpixel

// unlabelled is the label of pixels that have none yet.
const unlabelled = ^uint32(0)

// connected returns labels of connected parts of segments, in the order of their first pixels. A part ends at
// largest pixels; what remains of it is another one. One of fewer than smallest pixels joins the neighbour
// that the search met last.
func connected(of []int32, height, width, smallest, largest int) []uint32 {
	out := make([]uint32, len(of))
	for i := range out {
		out[i] = unlabelled
	}
	next := uint32(0)
	part := make([]int, 0, max(largest, 1))
	for first := range out {
		if out[first] != unlabelled {
			continue
		}
		adjacent := next
		out[first] = next
		part = append(part[:0], first)
		for at := 0; at < len(part); at++ {
			y, x := part[at]/width, part[at]%width
			for _, d := range [4][2]int{{0, 1}, {0, -1}, {1, 0}, {-1, 0}} {
				y, x := y+d[0], x+d[1]
				if len(part) >= largest || y < 0 || y >= height || x < 0 || x >= width {
					continue
				}
				j := y*width + x
				switch {
				case of[j] == of[first] && out[j] == unlabelled:
					out[j] = next
					part = append(part, j)
				case out[j] != unlabelled && out[j] != next:
					adjacent = out[j]
				}
			}
		}
		if len(part) < smallest {
			for _, i := range part {
				out[i] = adjacent
			}
			continue
		}
		next++
	}
	return out
}
