package scores

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/runexp/runexp/stages"
)

func port(ids []string, values []float64) stages.Data {
	var items stages.ItemSlice
	for _, id := range ids {
		items = append(items, stages.Item{ID: id})
	}
	return stages.Data{Items: items, Load: func(i int) ([]byte, error) {
		return stages.Scalar(values[i]), nil
	}}
}

// TestShared compares lists, whose items differ a little or not at all, with maps.
func TestShared(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	together := 0
	for range 300 {
		var lists []*List
		var byID []map[string]float64
		var order []string
		for k := range 3 {
			var ids []string
			for i := range 6 {
				if rng.IntN(20) > 0 {
					ids = append(ids, fmt.Sprint("image-", i))
				}
			}
			if rng.IntN(4) == 0 {
				rng.Shuffle(len(ids), func(a, b int) { ids[a], ids[b] = ids[b], ids[a] })
			}
			values := make([]float64, len(ids))
			m := map[string]float64{}
			for i, id := range ids {
				if values[i] = rng.Float64(); rng.IntN(10) == 0 {
					values[i] = math.NaN()
				}
				m[id] = values[i]
			}
			var like *List
			if k > 0 {
				like = lists[k-1]
			}
			l, err := read(context.Background(), port(ids, values), like)
			if err != nil {
				t.Fatal(err)
			}
			if k > 0 && l.names == like.names {
				together++
			}
			lists, byID = append(lists, l), append(byID, m)
			if k == 0 {
				order = ids
			}
		}
		want := [][]float64{{}, {}, {}}
		for _, id := range order {
			all := true
			for _, m := range byID {
				x, ok := m[id]
				all = all && ok && !math.IsNaN(x)
			}
			for k, m := range byID {
				if all {
					want[k] = append(want[k], m[id])
				}
			}
		}
		if got := Shared(lists); !reflect.DeepEqual(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
	}
	if together < 100 {
		t.Errorf("names were shared %d times only", together)
	}
}

// TestOrigins: an id of two origins stands for two images, which aren't shared.
func TestOrigins(t *testing.T) {
	list := func(origins ...string) *List {
		d := port([]string{"mosaic-0", "mosaic-1", "mosaic-2"}, []float64{1, 2, 3})
		for i := range origins {
			d.Items.(stages.ItemSlice)[i].Origin = origins[i]
		}
		l, err := read(t.Context(), d, nil)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	a, same, other := list("x", "y", "z"), list("x", "y", "z"), list("x", "z", "z")
	if got := Shared([]*List{a, same}); len(got[0]) != 3 || Mixed(a, same) {
		t.Errorf("equal origins: %v, mixed: %v", got, Mixed(a, same))
	}
	if got, want := Shared([]*List{a, other}), [][]float64{{1, 3}, {1, 3}}; !reflect.DeepEqual(got, want) ||
		!Mixed(a, other) || !Mixed(other, a) {
		t.Errorf("an image of another origin: %v, want %v", got, want)
	}
	if own := list("mosaic-0", "mosaic-1", "mosaic-2"); Mixed(own, list()) {
		t.Error("an item of its own origin is another one than without")
	}
}

func TestReadRefuses(t *testing.T) {
	bad := stages.Data{Items: stages.ItemSlice{{ID: "a"}}, Load: func(int) ([]byte, error) {
		return []byte("x"), nil
	}}
	if _, err := read(context.Background(), bad, nil); err == nil {
		t.Error("something else is taken for a score")
	}
	stopped, stop := context.WithCancel(context.Background())
	stop()
	if _, err := read(stopped, port([]string{"a"}, []float64{1}), nil); err != context.Canceled {
		t.Errorf("a stopped run gives %v", err)
	}
}
