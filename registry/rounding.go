package registry

import (
	"encoding/csv"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/runexp/runexp/docs"
	"github.com/runexp/runexp/stages"
)

// withRounding sets how much the results of each stage may deviate in precisions other than float32.
func withRounding(s *Set) *Set {
	for _, st := range s.stages {
		st.Rounding = roundings()[st.Name]
	}
	return s
}

// roundings returns the tolerances in docs/precision.csv, by stage and precision.
var roundings = sync.OnceValue(func() map[string]map[string]stages.Rounding {
	rows, err := csv.NewReader(strings.NewReader(docs.Precision())).ReadAll()
	if err != nil {
		panic(fmt.Sprintf("docs/precision.csv: %v", err)) // unreachable: TestPrecisionTable reads it
	}
	all := map[string]map[string]stages.Rounding{}
	for _, r := range rows[1:] {
		stage, quantity, precision := r[0], r[1], r[2]
		if all[stage] == nil {
			all[stage] = map[string]stages.Rounding{}
		}
		if all[stage][precision] == nil {
			all[stage][precision] = stages.Rounding{}
		}
		tolerance, err := strconv.ParseFloat(r[5], 64)
		if err != nil {
			tolerance = math.NaN()
		}
		all[stage][precision][quantity] = tolerance
	}
	return all
})
