package registry

import (
	"encoding/csv"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/runexp/runexp/docs"
)

// withRounding sets how much the results of each stage may deviate in precisions other than float32.
func withRounding(s *Set) *Set {
	for _, st := range s.stages {
		st.Rounding = roundings()[st.Name]
	}
	return s
}

// roundings returns the tolerances in docs/precision.csv, by stage and precision: NaN where the stage
// deviates too much to be computed in it.
var roundings = sync.OnceValue(func() map[string]map[string]float64 {
	rows, err := csv.NewReader(strings.NewReader(docs.Precision())).ReadAll()
	if err != nil {
		panic(fmt.Sprintf("docs/precision.csv: %v", err)) // unreachable: TestPrecisionTable reads it
	}
	all := map[string]map[string]float64{}
	for _, r := range rows[1:] {
		if all[r[0]] == nil {
			all[r[0]] = map[string]float64{}
		}
		tolerance, err := strconv.ParseFloat(r[4], 64)
		if err != nil {
			tolerance = math.NaN()
		}
		all[r[0]][r[1]] = tolerance
	}
	return all
})
