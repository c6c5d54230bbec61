package registry

import (
	"encoding/csv"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/runexp/runexp/docs"
)

// A Lead is the methods that lead by a metric on a net of a family of architectures, as measured by
// experiments/architectures.yaml.
type Lead struct {
	Family, Net, Metric string
	Lower               bool          // less is better
	Leaders             int           // the best method, and those that can't be told apart from it
	Best                []Measurement // the first of these, the best first
	Random              Measurement   // a random map, for comparison
}

// A Measurement is a method's mean over images, with its 95 % interval.
type Measurement struct {
	Method          string
	Uses            string // as an experiment writes it: {uses: attribute/saliency}
	Mean, Low, High float64
}

// leads are the rows of docs/architectures.csv: of each net and metric the first methods that lead, and the
// random map.
var leads = sync.OnceValue(func() (list []Lead) {
	rows, err := csv.NewReader(strings.NewReader(docs.Architectures())).ReadAll()
	if err != nil {
		panic(err)
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	for _, row := range rows[1:] {
		at := func(name string) string { return row[column[name]] }
		number := func(name string) float64 {
			v, err := strconv.ParseFloat(at(name), 64)
			if err != nil {
				panic(err)
			}
			return v
		}
		last := len(list) - 1
		if last < 0 || list[last].Net != at("net") || list[last].Metric != at("metric") {
			list = append(list, Lead{Family: at("family"), Net: at("net"), Metric: at("metric"),
				Lower: at("better") == "lower", Leaders: int(number("leaders"))})
			last++
		}
		m := Measurement{at("method"), at("uses"), number("mean"), number("low"), number("high")}
		if m.Method == "random" {
			list[last].Random = m
		}
		if at("leads") == "yes" {
			list[last].Best = append(list[last].Best, m)
		}
	}
	return list
})

// Leads returns what is measured of some families of architectures, in the order of the page; nothing of
// families that aren't measured.
func Leads(families ...string) (list []Lead) {
	for _, l := range leads() {
		if slices.Contains(families, l.Family) {
			list = append(list, l)
		}
	}
	return list
}
