package attribute

import (
	"math"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestAttentionBits checks that maps don't depend on batches and threads.
func TestAttentionBits(t *testing.T) {
	in := officialInput(t, "timm_vit_op17", "timm_vit_io", "unit")
	modeltest.InvariantStage(t, RawAttention, RawAttention.NewParams(), "maps", in)
	modeltest.InvariantStage(t, AttentionRollout, AttentionRollout.NewParams(), "maps", in)
	modeltest.InvariantStage(t, GenericAttention, GenericAttention.NewParams(), "maps", in)
	modeltest.InvariantStage(t, GradECLIP, GradECLIP.NewParams(), "maps", in)
	modeltest.InvariantStage(t, LeGrad, LeGrad.NewParams(), "maps", in)
	modeltest.InvariantStage(t, TransitionAttention, &TransitionAttentionParams{Common: common(), Steps: 3},
		"maps", in)
	for _, form := range []string{"attribution", "rollout", "last-layer", "full"} {
		modeltest.InvariantStage(t, TIBAV, &TIBAVParams{Common: common(), Form: form}, "maps", in)
	}
	for _, net := range []string{"distilled", "pooled"} {
		in := attnLRPInput(t, "tokens/"+net)
		in["images"] = []stages.Data{stagetest.Items(nil, Drawn(modeltest.Spec(t, in["model"][0]))...)}
		class := stages.NewTensor([]int64{3}, 1).Encode()
		in["targets"] = []stages.Data{stagetest.Items(nil, class, class, class, class)}
		modeltest.InvariantStage(t, GradECLIP, GradECLIP.NewParams(), "maps", in)
		modeltest.InvariantStage(t, LeGrad, LeGrad.NewParams(), "maps", in)
	}
}

// TestTokens holds rows that go through matrices, one after the other, against whole products of matrices.
func TestTokens(t *testing.T) {
	const size = 5
	var matrices [][]float32
	for b := range 3 {
		m := make([]float32, size*size)
		for i := range m {
			m[i] = float32(1 + math.Sin(float64(i*i+7*b)))
		}
		matrices = append(matrices, m)
	}
	a := program.Attention{Attention: relevance.Attention{Tokens: size, Read: []int{1, 4},
		Blocks: make([]string, 3)}}
	for _, normalise := range []bool{false, true} {
		product := make([]float64, size*size)
		for i := range size {
			product[i*size+i] = 1
		}
		for _, m := range matrices { // the later one on the left
			next := make([]float64, size*size)
			for i := range size {
				sum := 1.0
				for _, v := range m[i*size : (i+1)*size] {
					sum += float64(v)
				}
				for k := range size {
					v := float64(m[i*size+k])
					if i == k {
						v++
					}
					if normalise {
						v /= sum
					}
					for j := range size {
						next[i*size+j] += v * product[k*size+j]
					}
				}
			}
			product = next
		}
		rows := unitRows(a)
		for _, k := range blocks(a, 0) {
			if normalise {
				rows = rows.perSum(matrices[k])
			}
			rows = rows.times(matrices[k], 1)
		}
		for r, token := range a.Read {
			for j, got := range rows[r] {
				if want := product[token*size+j]; !(math.Abs(got-want) <= 1e-12*want) {
					t.Errorf("normalise %t, token %d at %d: %v, want %v", normalise, token, j, got, want)
				}
			}
		}
	}
}

// TestRolloutOrders checks that both orders differ, and that they don't with one block.
func TestRolloutOrders(t *testing.T) {
	in := officialInput(t, "timm_vit_op17", "timm_vit_io", "unit")
	for start, same := range map[int]bool{0: false, 2: true} {
		var all [][][]float64
		for _, order := range []string{"last-first", "first-last"} {
			all = append(all, mapsOf(t, AttentionRollout, &AttentionRolloutParams{common(), true, order,
				start}, in))
		}
		largest := 0.0
		for i := range all[0] {
			for k, v := range all[0][i] {
				largest = max(largest, math.Abs(v-all[1][i][k]))
			}
		}
		if (largest == 0) != same {
			t.Errorf("from block %d: the orders differ by %g", start, largest)
		}
	}
}

// TestAttentionRefuses checks that methods of attention say why a model doesn't fit.
func TestAttentionRefuses(t *testing.T) {
	cnn := officialInput(t, "smallcnn", "smallcnn_io", "unit")
	if _, err := stagetest.Try(RawAttention, RawAttention.NewParams(), cnn); err == nil ||
		!strings.Contains(err.Error(), "no attention of tokens to tokens") {
		t.Errorf("a net of convolutions: %v", err)
	}
	vit := officialInput(t, "timm_vit_op17", "timm_vit_io", "unit")
	if _, err := stagetest.Try(TIBAV, &TIBAVParams{Common: common(), Form: "attribution", Start: 3},
		vit); err == nil || !strings.Contains(err.Error(), "has 3 blocks") {
		t.Errorf("the fourth of three blocks: %v", err)
	}
	p := TIBAVParams{Common: common(), Form: "last-layer", Start: 1}
	if err := p.Validate(); err == nil || !strings.Contains(err.Error(), "doesn't multiply blocks") {
		t.Errorf("the first block of one: %v", err)
	}
	p = TIBAVParams{Common: common(), Form: "attribution"}
	p.Output = "probability"
	if err := p.Validate(); err == nil || !strings.Contains(err.Error(), "logit") {
		t.Errorf("relevance of a probability: %v", err)
	}
}
