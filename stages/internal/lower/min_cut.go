package lower

// A flow is a network of vertices with capacities between them, for the least cut between two of them:
// Dinic, "Algorithm for solution of a problem of maximum flow in networks with power estimation", Soviet
// Mathematics Doklady 1970.
type flow struct {
	edges []edge
	at    [][]int // by vertex: its edges; the reverse of edge i is i^1
	level []int   // by vertex: its distance from the source
	next  []int   // by vertex: the first of its edges that isn't exhausted
}

type edge struct{ to, room int }

// unbounded is the capacity of an edge that is never cut.
const unbounded = 1 << 40

func newFlow(vertices int) *flow { return &flow{at: make([][]int, vertices)} }

// vertex adds a vertex.
func (f *flow) vertex() int {
	f.at = append(f.at, nil)
	return len(f.at) - 1
}

// join adds an edge of a capacity.
func (f *flow) join(from, to, capacity int) {
	f.at[from] = append(f.at[from], len(f.edges))
	f.at[to] = append(f.at[to], len(f.edges)+1)
	f.edges = append(f.edges, edge{to, capacity}, edge{from, 0})
}

// sourceSide returns, by vertex, whether it is on the source's side of a least cut: the smallest such side.
func (f *flow) sourceSide(source, sink int) []bool {
	for f.measure(source); f.level[sink] >= 0; f.measure(source) {
		f.next = make([]int, len(f.at))
		for f.push(source, sink, unbounded) > 0 {
		}
	}
	side := make([]bool, len(f.at))
	for v, d := range f.level {
		side[v] = d >= 0
	}
	return side
}

// measure finds the vertices' distances from the source along edges with room; -1: out of reach.
func (f *flow) measure(source int) {
	f.level = make([]int, len(f.at))
	for v := range f.level {
		f.level[v] = -1
	}
	f.level[source] = 0
	for queue := []int{source}; len(queue) > 0; queue = queue[1:] {
		for _, i := range f.at[queue[0]] {
			if e := f.edges[i]; e.room > 0 && f.level[e.to] < 0 {
				f.level[e.to] = f.level[queue[0]] + 1
				queue = append(queue, e.to)
			}
		}
	}
}

// push sends up to limit from a vertex to the sink on a shortest path, and returns how much.
func (f *flow) push(v, sink, limit int) int {
	if v == sink {
		return limit
	}
	for ; f.next[v] < len(f.at[v]); f.next[v]++ {
		i := f.at[v][f.next[v]]
		e := f.edges[i]
		if e.room == 0 || f.level[e.to] != f.level[v]+1 {
			continue
		}
		if sent := f.push(e.to, sink, min(limit, e.room)); sent > 0 {
			f.edges[i].room -= sent
			f.edges[i^1].room += sent
			return sent
		}
	}
	return 0
}
