package fuse

import (
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/claims"
	"github.com/runexp/runexp/stages/internal/stat"
)

// claimed tests claims about κ. The p-value of two methods is that of the sign test of the cases in which
// one is ahead.
func (c *contest) claimed(p MetaRankParams, r result, label func(axis, id string) string) (*claims.Outcomes,
	error) {
	found := &claims.Results{Axes: []string{p.Rank}, Names: kappaNames, Label: label, Holm: true,
		Unit: "cases"}
	for i, method := range c.methods {
		found.Add([]string{method}, r.Kappa[i])
	}
	found.Compare = func(i, k int) claims.Comparison {
		ahead, behind := 0, 0
		for _, q := range c.quality {
			switch {
			case q[i] > q[k]:
				ahead++
			case q[i] < q[k]:
				behind++
			}
		}
		x, y := r.Kappa[i], r.Kappa[k]
		if math.Abs(x-y) <= kappaTolerance {
			x = y
		}
		return claims.Comparison{X: x, Y: y, N: ahead + behind, P: stat.SignTest(ahead, behind)}
	}
	return found.Test(p.List)
}

// kappaNames are those of the number in claims.
var kappaNames = []string{"kappa"}

// Known rejects claims that name unknown ids.
func (p MetaRankParams) Known(ids map[string][]string) error {
	return p.List.Known(map[string][]string{p.Rank: ids[p.Rank]}, kappaNames...)
}

// Validate rejects parameters that can't be read.
func (p MetaRankParams) Validate() error {
	if err := p.Params.Validate(); err != nil {
		return err
	}
	return p.List.Validate()
}

var words = claims.Words{Verb: "have", More: "a larger κ", Digits: 2, Paired: "the sign test of the cases"}

// kappaColumn describes κ.
var kappaColumn = stages.Column{Name: "kappa", Unit: "log-odds", Tolerance: kappaTolerance, Digits: 4}
