package score

import (
	"fmt"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// morfLerf returns the ports of scores that compare the two orders of removal.
func morfLerf() []stages.Port {
	return []stages.Port{
		{Name: "morf", Type: stages.Curves, Doc: "curves that remove the most relevant pixels first"},
		{Name: "lerf", Type: stages.Curves, Doc: "curves of the same maps and steps that remove the least " +
			"relevant pixels first"},
	}
}

// checkMorfLerf rejects curves of other orders, as with swapped edges, or of other steps.
func checkMorfLerf(in map[string]stages.Facts) error {
	for port, first := range map[string][2]string{"morf": {"morf", "deletion"}, "lerf": {"lerf", "lerf"}} {
		if order := in[port]["order"]; order != first[0] && order != first[1] {
			return fmt.Errorf("the input %q needs curves of the order %s, not of %q", port, first[0], order)
		}
	}
	for _, fact := range []string{"shares", "step_pixels"} {
		if a, b := in["morf"][fact], in["lerf"][fact]; a != b {
			return fmt.Errorf("the curves have different steps: the fact %s is %q of morf, and %q of lerf",
				fact, a, b)
		}
	}
	return nil
}

// bothCurves returns one response of the two curves of item i, which have as many points.
func bothCurves(e *stages.Env, i int, response string) (morf, lerf []float64, err error) {
	if morf, err = metric.Response(e.Facts("morf"), e.In("morf", i), responses[response]); err != nil {
		return nil, nil, fmt.Errorf("morf: %w", err)
	}
	if lerf, err = metric.Response(e.Facts("lerf"), e.In("lerf", i), responses[response]); err != nil {
		return nil, nil, fmt.Errorf("lerf: %w", err)
	}
	if len(morf) != len(lerf) {
		return nil, nil, fmt.Errorf("the curve of morf has %d points, that of lerf %d", len(morf), len(lerf))
	}
	return morf, lerf, nil
}
