package model

import (
	"math"
	"testing"
)

// TestBrokenFeed holds that a feed that overflows the model, as raw pixels do a net of half precision, and a
// numbering whose labels the model excludes are no rivals of one that explains the labels.
func TestBrokenFeed(t *testing.T) {
	inf := float32(math.Inf(1))
	for name, wrong := range map[string][]float32{
		"overflow": {inf, 0, 0}, "NaN": {inf - inf, 0, 0}, "all overflow": {inf, inf, inf},
		"excluded": {-inf, 0, 0},
	} {
		e := &Evidence{Classes: 3, Numberings: [][]int64{{}}}
		var right, answers [][]float32
		for i := range 12 {
			class := i % 3
			row := []float32{0, 0, 0}
			row[class] = 4
			e.Groups, e.Numberings[0] = append(e.Groups, class), append(e.Numberings[0], int64(class))
			right, answers = append(right, row), append(answers, wrong)
		}
		e.Add(0, answers...)
		e.Add(1, right...)
		v := e.verdict(Question{Feeds: []Feed{{Prior: 0.9}, {Prior: 0.1}}, Numberings: []float64{0.9},
			Other: 0.1})
		best, ok := v.Best()
		if !ok || best.Feed != 1 || best.Posterior < 0.9 {
			t.Errorf("%s: the best is %+v, %v, and others have %v", name, best, ok, v.Other)
		}
		if doubtful, unlikely := v.Rivals(); doubtful != nil || unlikely != nil {
			t.Errorf("%s: rivals are %v and %v", name, doubtful, unlikely)
		}
	}
}
