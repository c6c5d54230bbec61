package dataset

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/runexp/runexp/stages"
)

// A Choice holds the parameters that choose among the images of a data set. They aren't in keys: results
// for an image are found again when other images are chosen with it.
type Choice struct {
	Count      int `yaml:"count" doc:"how many images at most, the first of the list; 0: all" key:"-" min:"0" max:"100000000"`
	Sample     int `yaml:"sample" doc:"how many images at most, drawn at random; those of a smaller sample are among those of a larger one; 0: all" key:"-" min:"0" max:"100000000"`
	SampleSeed int `yaml:"sample_seed" doc:"seed of the draw" key:"-" min:"0" max:"1000000000"`
	SampleSkip int `yaml:"sample_skip" doc:"how many images of the draw are left out, its first ones, such as those on which a method was chosen: with sample: 0 all others are taken" key:"-" min:"0" max:"100000000"`
	PerClass   int `yaml:"per_class" doc:"how many images a class at most, the first of the list or, with sample, random ones; 0: all" key:"-" min:"0" max:"100000000"`
}

// check rejects two totals, and a draw of the first of a list.
func (c Choice) check() error {
	if c.Count > 0 && c.SampleSkip > 0 {
		return stages.BadField("sample_skip", "count and sample_skip are mutually exclusive: count takes "+
			"the first of the list, sample_skip leaves out random ones")
	}
	if c.Count > 0 && c.Sample > 0 {
		return stages.BadField("sample", "count and sample are mutually exclusive: count takes the first "+
			"of the list, sample random ones")
	}
	return nil
}

// of returns the chosen sources, in their order. Whether a source belongs to a sample depends only on its
// id and the seed, not on the order of a list.
func (c Choice) of(all []stages.Source) ([]stages.Source, error) {
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	if c.Sample > 0 || c.SampleSkip > 0 {
		draw := make([]stages.Digest, len(all))
		for i := range all {
			draw[i] = stages.Sum([]byte(strconv.Itoa(c.SampleSeed) + "\n" + all[i].ID))
		}
		slices.SortFunc(order, func(a, b int) int {
			return cmp.Or(bytes.Compare(draw[a][:], draw[b][:]), a-b)
		})
	}
	if c.PerClass > 0 {
		taken := map[int64]int{}
		few := order[:0]
		for _, i := range order {
			label, err := noteLabel(all[i])
			if err != nil {
				return nil, err
			}
			if label < 0 {
				return nil, fmt.Errorf("per_class: %q has no class: of images that aren't in a folder for "+
					"each class, give a list of files and labels, list: labels.csv", all[i].ID)
			}
			if taken[label]++; taken[label] <= c.PerClass {
				few = append(few, i)
			}
		}
		order = few
	}
	if c.SampleSkip > 0 && c.SampleSkip >= len(order) {
		return nil, fmt.Errorf("sample_skip: %d leaves out all of the %d", c.SampleSkip, len(order))
	}
	order = order[c.SampleSkip:]
	if n := cmp.Or(c.Count, c.Sample); n > 0 {
		order = order[:min(n, len(order))]
	}
	if len(order) == len(all) {
		return all, nil
	}
	if len(order) == 0 {
		return nil, errors.New("no image is chosen")
	}
	slices.Sort(order)
	chosen := make([]stages.Source, len(order))
	for k, i := range order {
		chosen[k] = all[i]
	}
	return chosen, nil
}
