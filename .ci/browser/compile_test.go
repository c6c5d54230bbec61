package browser

import (
	"encoding/binary"
	"image"
	"image/color"
	"image/png"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// side is that of the quickstart's nets.
const side = 64

// TestCompiledPage has the page of experiments/examples/browser explain a photograph by a compiled net,
// served from this machine, and compares the map with that of the method itself.
func TestCompiledPage(t *testing.T) {
	page := filepath.Join(root, "experiments", "examples", "browser")
	for _, file := range []string{"ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm"} {
		if _, err := os.Stat(filepath.Join(page, file)); err != nil {
			t.Skipf("%v: make browser-example copies it, if npm can be reached", err)
		}
	}
	dir := t.TempDir()
	photo := filepath.Join(dir, "photos", "photo.png")
	writePhoto(t, photo)
	nets, err := filepath.Abs(filepath.Join(root, "experiments", "quickstart"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ net, method string }{
		{"resnet", "grad-cam"}, {"vgg-bn", "lrp-composite"}, {"vit", "integrated-gradients"},
	} {
		t.Run(c.method, func(t *testing.T) {
			net := filepath.Join(nets, c.net+".onnx")
			runexp(t, dir, "compile", net, "--preset", "half", "--method", c.method, "--out", "net+cam.onnx")
			want := mapOf(t, dir, net, c.method)
			server := httptest.NewServer(files{page, dir})
			defer server.Close()
			mine := func(url string) bool { return strings.HasPrefix(url, server.URL) }
			p := visit(t, server.URL+"/index.html", mine, 760, 620)
			p.run(chromedp.SetUploadFiles("#photo", []string{photo}))
			p.until(`window.explained != null || document.getElementById("error").textContent != ""`)
			got := js[[]float64](p, `window.explained?.map ?? []`)
			if len(got) != side*side || len(want) != len(got) {
				t.Fatalf("the page's map has %d values, the method's %d: %s", len(got), len(want),
					js[string](p, `document.getElementById("error").textContent`))
			}
			largest, most := 0.0, 0.0
			for i := range want {
				largest = math.Max(largest, math.Abs(want[i]))
				most = math.Max(most, math.Abs(got[i]-want[i]))
			}
			t.Logf("%s of %s in the page: deviation %.2g of the largest value, %.0f ms", c.method, c.net,
				most/largest, js[float64](p, `window.explained.took`))
			if !(most <= 1e-4*largest) {
				t.Errorf("the page's map deviates by %.2g of the largest value", most/largest)
			}
			if painted := js[int](p, `new Set(document.getElementById("heat").getContext("2d").getImageData(0, 0,
				64, 64).data).size`); painted < 20 {
				t.Errorf("the heat map has %d shades", painted)
			}
			if file := os.Getenv("RUNEXP_PICTURE"); file != "" && c.method == "grad-cam" {
				var b []byte
				p.run(chromedp.FullScreenshot(&b, 100))
				if err := os.WriteFile(file, b, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// files serves a page's folder, and the compiled net of another.
type files struct{ page, nets string }

func (f files) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	dir := f.page
	if strings.HasSuffix(r.URL.Path, ".onnx") {
		dir = f.nets
	}
	if strings.HasSuffix(r.URL.Path, ".mjs") {
		w.Header().Set("Content-Type", "text/javascript")
	}
	http.FileServer(http.Dir(dir)).ServeHTTP(w, r)
}

// writePhoto writes a picture of a ball on a ramp.
func writePhoto(t *testing.T, path string) {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, side, side))
	for y := range side {
		for x := range side {
			c := color.RGBA{uint8(3*x + 20), uint8(2*y + 60), uint8(200 - x - y), 255}
			if math.Hypot(float64(x-40), float64(y-26)) < 14 {
				c = color.RGBA{220, uint8(40 + x), 30, 255}
			}
			m.SetRGBA(x, y, c)
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := png.Encode(f, m); err != nil {
		t.Fatal(err)
	}
}

// mapOf returns the map of the method itself for the photograph.
func mapOf(t *testing.T, dir, net, method string) (values []float64) {
	t.Helper()
	text := `name: page
stages:
  images: {uses: dataset/folder, with: {path: photos}}
  model: {uses: model/onnx, with: {path: '` + net + `', preset: half}}
  maps: {uses: attribute/` + method + `, in: {model: model, images: images.images}}
`
	if err := os.WriteFile(filepath.Join(dir, method+".yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out-"+method)
	runexp(t, dir, "get", method+".yaml", "maps", "-o", out)
	found, err := filepath.Glob(filepath.Join(out, "*maps*.npy"))
	if err != nil || len(found) != 1 {
		found, _ = filepath.Glob(filepath.Join(out, "*"))
		t.Fatalf("no array of maps among %v", found)
	}
	b, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	for b = b[10+int(binary.LittleEndian.Uint16(b[8:])):]; len(b) >= 4; b = b[4:] {
		values = append(values, float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
	}
	return values
}
