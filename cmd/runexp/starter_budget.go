package main

import (
	"fmt"
	"math"
)

const (
	firstRun    = 300.0 // seconds on two cores that a starter may take
	mostImages  = 50    // further images add little to a first look
	enough      = 12    // images to which costly methods give way
	leastImages = 4     // even for a large model
)

// Estimates for one core, measured on a processor with AVX-512.
const (
	perMultiplyAdd = 1 / 50e9
	perValue       = 20e-9 // seconds for each value of an image, for pixel operations between passes
)

// budget chooses methods, their settings and the number of images for a run of a few minutes: first it
// leaves out the costliest methods, then it coarsens the others. The choice depends only on the model and
// the folder, so that everyone gets the same experiment.
func (s *starter) budget() {
	pass := s.pass()
	for _, level := range []struct{ costly, coarse, images int }{
		{512, 1, enough}, {400, 1, enough}, {200, 1, enough}, {100, 2, leastImages},
	} {
		s.Coarse, s.Steps = level.coarse, 16/level.coarse
		image := pass * float64(s.choose(s.candidates(), level.costly)+len(s.Methods)*2*(s.Steps+1))
		s.Count = min(s.Folder.Images, mostImages, max(level.images, int(firstRun/image)))
		if s.seconds = image * float64(s.Count); s.seconds <= firstRun {
			return
		}
	}
}

// pass returns the seconds of a forward pass on two cores.
func (s *starter) pass() float64 {
	f := s.Model.Feed
	pass := float64(s.Model.MultiplyAdds)*perMultiplyAdd + float64(f.Channels*f.Height*f.Width)*perValue
	return pass / 2
}

// Time describes how long the run takes, approximately.
func (s *starter) Time() string {
	if m := math.Round(s.seconds / 60); m > 1 {
		return fmt.Sprintf("%.0f minutes", m)
	}
	return "a minute"
}
