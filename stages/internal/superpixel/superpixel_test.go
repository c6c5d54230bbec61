package superpixel

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/stagetest"
)

// The parameters of testdata/segments.py.
var (
	slicCases = []SLIC{
		{100, 10, 10, 0, .5, 3}, {7, 10, 10, 0, .5, 3}, {40, 1, 10, 0, .5, 3}, {25, 10, 10, 1.5, .5, 3},
		{30, 10, 3, 0, .2, 1.5},
	}
	felzenszwalbCases = []Felzenszwalb{{1, .8, 20}, {100, .8, 20}, {50, 0, 20}, {200, 1.3, 5}}
	quickshiftCases   = []Quickshift{{5, 10, 1, 0}, {4, 200, .2, 0}, {2, 10, 1, 1}}
)

// segmented returns the segments of an image by a case of the script, such as slic2.
func segmented(m Image, what string) []uint32 {
	k := int(what[len(what)-1] - '0')
	switch what[:len(what)-1] {
	case "slic":
		return slicCases[k].Labels(m)
	case "felzenszwalb":
		return felzenszwalbCases[k].Labels(m)
	}
	draw := -1
	return quickshiftCases[k].Labels(m, func() float64 {
		draw++
		return float64(draw*7919%1009)/504.5 - 1
	})
}

// TestEqualsScikitImage compares segments with those of scikit-image 0.26.0, made by testdata/segments.py.
func TestEqualsScikitImage(t *testing.T) {
	arrays, err := stagetest.Arrays("testdata/segments.npz")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(arrays)) {
		image, what, labels := strings.Cut(name, ".")
		if !labels {
			continue
		}
		t.Run(name, func(t *testing.T) {
			pixels, err := arrays[image].Tensor()
			if err != nil {
				t.Fatal(err)
			}
			got, want := segmented(ImageOf(pixels), what), arrays[name].Int64s()
			differ := 0
			for i, w := range want {
				if int64(got[i]) != w {
					differ++
				}
			}
			if differ > 0 {
				t.Errorf("%d of %d pixels differ, %d segments, want %d", differ, len(want), slices.Max(got)+1,
					slices.Max(want)+1)
			}
		})
	}
}

// TestEqualsOnPhotographs compares the digests of labels of 24 photographs with those of scikit-image.
func TestEqualsOnPhotographs(t *testing.T) {
	dir := stagetest.Shared(t, "data", "images", "imagenet_val227")
	var want map[string]map[string]string
	b, err := os.ReadFile("testdata/photographs.json")
	if err == nil {
		err = json.Unmarshal(b, &want)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range stagetest.Sample(t, 8, slices.Sorted(maps.Keys(want))) {
		m := photograph(t, filepath.Join(dir, name), 180, 240)
		for what, digest := range want[name] {
			var raw []byte
			for _, l := range segmented(m, what) {
				raw = binary.LittleEndian.AppendUint32(raw, l)
			}
			if sum := sha256.Sum256(raw); hex.EncodeToString(sum[:8]) != digest {
				t.Errorf("%s: %s differs", name, what)
			}
		}
	}
}

// photograph returns the top left of a photograph, height × width pixels at most.
func photograph(t testing.TB, path string, height, width int) Image {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p, err := picture.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	m := Image{min(height, p.H), min(width, p.W), 3, nil}
	for y := range m.Height {
		for _, v := range p.Pix[3*y*p.W : 3*(y*p.W+m.Width)] {
			m.Pix = append(m.Pix, float64(v)*byteUnit)
		}
	}
	return m
}

// BenchmarkSegments measures the algorithms on a photograph; testdata/times.py does so for scikit-image.
func BenchmarkSegments(b *testing.B) {
	dir := stagetest.Shared(b, "data", "images", "imagenet_val227")
	m := photograph(b, filepath.Join(dir, "ILSVRC2012_val_00000361.JPEG"), 224, 224)
	for _, what := range []string{"slic0", "felzenszwalb1", "quickshift1"} {
		b.Run(what, func(b *testing.B) {
			for b.Loop() {
				segmented(m, what)
			}
		})
	}
}

// TestLabelsAreWithoutGaps checks on small images of random sizes that labels are those from 0 to their
// number, and that SLIC's segments are connected.
func TestLabelsAreWithoutGaps(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	for range 300 {
		m := Image{1 + r.IntN(9), 1 + r.IntN(9), []int{1, 3}[r.IntN(2)], nil}
		for range m.Height * m.Width * m.Channels {
			m.Pix = append(m.Pix, float64(r.IntN(3))/2)
		}
		slic := SLIC{1 + r.IntN(12), 10, 4, 0, r.Float64(), 1 + 2*r.Float64()}.Labels(m)
		for name, labels := range map[string][]uint32{
			"slic":         slic,
			"felzenszwalb": Felzenszwalb{r.Float64() * 200, r.Float64(), 1 + r.IntN(9)}.Labels(m),
			"quickshift":   Quickshift{1 + r.Float64(), 3, 1, 0}.Labels(m, r.NormFloat64),
		} {
			names := slices.Compact(slices.Sorted(slices.Values(labels)))
			if len(labels) != m.Height*m.Width || names[0] != 0 || int(names[len(names)-1]) != len(names)-1 {
				t.Fatalf("%s of %d×%d pixels: labels %v", name, m.Height, m.Width, labels)
			}
		}
	}
}

// TestPermutedChannels checks that Felzenszwalb's segments are those of the image whose channels are in
// another order, and those of the mirrored image mirrored, where all costs differ.
func TestPermutedChannels(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 2))
	m := Image{7, 11, 3, nil}
	for range m.Height * m.Width * m.Channels {
		m.Pix = append(m.Pix, r.Float64())
	}
	p := Felzenszwalb{60, 0, 4}
	want, count := p.Labels(m), 0
	other := m.clone()
	for k := 0; k < len(m.Pix); k += 3 {
		other.Pix[k], other.Pix[k+1], other.Pix[k+2] = m.Pix[k+2], m.Pix[k], m.Pix[k+1]
	}
	if got := p.Labels(other); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	mirrored := m.clone()
	for i := range m.Height * m.Width {
		j := i/m.Width*m.Width + m.Width - 1 - i%m.Width
		copy(mirrored.Pix[3*i:3*i+3], m.Pix[3*j:3*j+3])
	}
	got := p.Labels(mirrored)
	for i := range got {
		for j := range got {
			mi, mj := i/m.Width*m.Width+m.Width-1-i%m.Width, j/m.Width*m.Width+m.Width-1-j%m.Width
			if (want[i] == want[j]) != (got[mi] == got[mj]) {
				count++
			}
		}
	}
	if count > 0 {
		t.Errorf("%d pairs of pixels are in one segment of the image or of its mirror image alone", count)
	}
}

func TestCombs(t *testing.T) {
	for _, tc := range []struct {
		height, width, n int
		rows, columns    comb
	}{
		{100, 100, 100, comb{5, 10}, comb{5, 10}},
		{224, 224, 100, comb{11, 22}, comb{11, 22}}, // of a distance of 22.4
		{3, 300, 30, comb{1, 3}, comb{5, 10}},       // rows of 3 pixels are taken whole
		{300, 3, 30, comb{5, 10}, comb{1, 3}},
		{1, 50, 5, comb{0, 1}, comb{5, 10}},
		{2, 2, 4, comb{0, 1}, comb{0, 1}},
		{5, 5, 1, comb{2, 5}, comb{2, 5}},
	} {
		rows, columns := combs(tc.height, tc.width, tc.n)
		if rows != tc.rows || columns != tc.columns {
			t.Errorf("%d×%d pixels, %d seeds: %v and %v, want %v and %v", tc.height, tc.width, tc.n, rows,
				columns, tc.rows, tc.columns)
		}
	}
}
