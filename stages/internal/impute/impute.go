// Package impute fills the removed pixels of an image from the remaining ones: the noisy linear imputation of
// Rong et al., "A Consistent and Efficient Evaluation Strategy for Attribution Methods" (ROAD), ICML 2022,
// section 4.2, without the noise.
//
// A removed pixel is the weighted mean of its neighbours in the image, 1/6 for each direct and 1/12 for each
// diagonal one, as they are or as they are imputed. That is a system of linear equations, symmetric and
// positive definite where a pixel remains: on the diagonal of a removed pixel is the sum of its weights,
// smaller at the border of the image, and off the diagonal minus the weight of each removed neighbour
// (level.go). It is solved by conjugate gradients (conjugate_gradients.go), preconditioned by a multigrid
// cycle (multigrid.go): the number of iterations, about ten, depends on neither the size of the image nor the
// shape of what is removed. Three channels are solved together, and independently.
package impute

import (
	"errors"
	"math"
)

// Channels is how many channels are imputed together.
const Channels = 3

// A pixel has the values of the channels.
type pixel = [Channels]float64

// The weights of direct and diagonal neighbours.
const (
	direct   = 1.0 / 6
	diagonal = 1.0 / 12
)

// accuracy is the largest error that is left of an imputed value, as the preconditioner estimates it,
// relative to the largest magnitude of the remaining pixels. It is that of float32's last bit.
const accuracy = 1e-8

// A first guess is too far from the solution, which is nowhere above the remaining pixels, where it is this
// many times as large: its rounding errors alone would be above the accuracy, and never below an accuracy of
// 0, that of an image whose remaining pixels are 0.
const far = 1e6

// ErrNothingKept says that all pixels are removed.
var ErrNothingKept = errors.New("all pixels are removed: there is none to impute them from")

// An Imputer imputes images of one size. It is for one goroutine.
type Imputer struct {
	height, width int
	levels        []*level // from the image to a single place
	x             []pixel  // the image, with a border of one pixel
	b, r, z, p, q []pixel  // vectors of the conjugate gradients
	iterations    int      // of the last imputation
}

// New returns an Imputer for images of height × width pixels.
func New(height, width int) *Imputer {
	m := &Imputer{height: height, width: width}
	for h, w := height, width; ; h, w = (h+1)/2, (w+1)/2 {
		m.levels = append(m.levels, newLevel(h, w))
		if h == 1 && w == 1 {
			break
		}
	}
	for k, l := range m.levels[1:] {
		m.levels[k].interpolateFrom(l)
	}
	size := len(m.levels[0].a)
	for _, v := range []*[]pixel{&m.x, &m.b, &m.r, &m.z, &m.p, &m.q} {
		*v = make([]pixel, size)
	}
	return m
}

// Impute replaces the removed pixels of an image [C,H,W], C at most 3. What the image has in their places is
// the first guess: the closer, the faster, but it decides no more than errors of 1e-8 of the largest
// magnitude of the remaining pixels. One that is far from them is taken as 0.
func (m *Imputer) Impute(image []float32, removed []bool) error {
	n := m.height * m.width
	channels := len(image) / n
	fine := m.levels[0]
	largest, guess, kept := 0.0, 0.0, false
	for i := range n {
		at := fine.place(i)
		fine.active[at] = removed[i]
		for c := range channels {
			v := float64(image[c*n+i])
			m.x[at][c] = v
			if removed[i] {
				guess = math.Max(guess, math.Abs(v))
			} else {
				largest, kept = math.Max(largest, math.Abs(v)), true
			}
		}
	}
	if !kept {
		return ErrNothingKept
	}
	m.assemble()
	if guess > far*largest {
		for _, at := range fine.places {
			m.x[at] = pixel{}
		}
	}
	if err := m.solve(accuracy * largest); err != nil {
		return err
	}
	for i := range n {
		if removed[i] {
			for c := range channels {
				image[c*n+i] = float32(m.x[fine.place(i)][c])
			}
		}
	}
	return nil
}

// assemble sets the equations of the removed pixels: their coefficients on the finest level, the right-hand
// side, and the coarser levels.
func (m *Imputer) assemble() {
	l := m.levels[0]
	l.list()
	clear(l.a)
	inside := func(y, x int) bool { return y >= 0 && y < m.height && x >= 0 && x < m.width }
	for _, at := range l.places {
		y, x := int(at)/l.stride-1, int(at)%l.stride-1
		m.b[at] = pixel{}
		for dy := -1; dy <= 1; dy++ {
			for dx := -1; dx <= 1; dx++ {
				if dy == 0 && dx == 0 || !inside(y+dy, x+dx) {
					continue
				}
				weight := diagonal
				if dy == 0 || dx == 0 {
					weight = direct
				}
				l.a[at][centre] += weight
				k := int(at) + dy*l.stride + dx
				if !l.active[k] {
					for c := range Channels {
						m.b[at][c] += weight * m.x[k][c]
					}
				} else if s := stencilOf(dy, dx); s > centre {
					l.a[at][s] = -weight
				}
			}
		}
	}
	l.invert()
	for k, coarse := range m.levels[1:] {
		coarse.restrictOperator(m.levels[k])
	}
}
