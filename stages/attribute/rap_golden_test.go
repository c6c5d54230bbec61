package attribute

import (
	"testing"

	"github.com/runexp/runexp/stages/internal/modeltest"
)

// TestOfficialRAP holds relative attributing propagation, and its contrast, against the authors' code.
func TestOfficialRAP(t *testing.T) {
	for _, file := range []string{"smallcnn_img0", "smallcnn_img2"} {
		a := read(t, "rap", file+".npz")
		m, x, target := modeltest.Official(t, "smallcnn", 0), a["x"].Float32s(), a["target"].Int64s()[0]
		p := RAPParams{unreduced(), "official"}
		closeTo(t, file+" rap", oneMap(t, RAP, &p, m, x, []int{3, 32, 32}, target), a["rap"].Float32s(),
			relevance32)
		contrast := oneMap(t, CRAP, &CRAPParams{p, "two-passes"}, m, x, []int{3, 32, 32}, target)
		one, others := a["rap"].Float32s(), a["rap_others"].Float32s()
		want := make([]float32, len(one))
		for i := range want {
			want[i] = one[i] - others[i]/9
		}
		closeTo(t, file+" rap minus rap_others", contrast, want, contrast32)
		p.Reduce = "sum"
		closeTo(t, file+" rap_2d", oneMap(t, RAP, &p, m, x, []int{3, 32, 32}, target), a["rap_2d"].Float32s(),
			relevance32)
	}
}
