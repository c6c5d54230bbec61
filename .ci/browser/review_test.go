// Package browser tests the page of a review folder in a browser: it needs Chromium, which make test-review
// installs where it can. It is a module of its own: what drives the browser is no part of the command.
package browser

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// root is the folder of the repository.
const root = "../.."

// command returns the command, or ends the test as it says how to build it.
func command(t *testing.T) string {
	t.Helper()
	bin, err := filepath.Abs(filepath.Join(root, "bin", "runexp"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(bin); err != nil {
		t.Fatalf("%v: make build makes it", err)
	}
	return bin
}

// runexp runs the command in a folder.
func runexp(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command(command(t), args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("runexp %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// A tab is a page in a browser, with what went wrong there.
type tab struct {
	*testing.T
	ctx      context.Context
	mu       sync.Mutex
	problems []string // errors on the console, requests to anywhere
	took     time.Duration
}

// open opens a file in a browser.
func open(t *testing.T, file string, width, height int64, media ...*emulation.MediaFeature) *tab {
	t.Helper()
	file, fragment, _ := strings.Cut(file, "#")
	file, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	mine := func(url string) bool { return url == "file://"+file }
	return visit(t, "file://"+file+"#"+fragment, mine, width, height, media...)
}

// visit opens an address in a browser; requests for others than mine are problems.
func visit(t *testing.T, address string, mine func(url string) bool, width, height int64,
	media ...*emulation.MediaFeature) *tab {
	t.Helper()
	chromium := ""
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil && chromium == "" {
			chromium = path
		}
	}
	if chromium == "" {
		t.Skip("there is no Chromium: make test-review installs it on Debian; $CHROMIUM names another one")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium),
		chromedp.NoSandbox, chromedp.WindowSize(int(width), int(height)))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 3*time.Minute)
	t.Cleanup(cancel)
	p := &tab{T: t, ctx: ctx}
	chromedp.ListenTarget(ctx, func(event any) {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventConsoleAPICalled:
			text := "console: " + string(e.Type)
			for _, a := range e.Args {
				text += " " + string(a.Value) + a.Description
			}
			p.problems = append(p.problems, text)
		case *runtime.EventExceptionThrown:
			p.problems = append(p.problems, "exception: "+e.ExceptionDetails.Error())
		case *log.EventEntryAdded:
			p.problems = append(p.problems, "log: "+e.Entry.Text+" "+e.Entry.URL)
		case *network.EventRequestWillBeSent:
			url := e.Request.URL
			if !mine(url) && !strings.HasPrefix(url, "data:") {
				p.problems = append(p.problems, "request: "+url)
			}
		}
	})
	p.run(network.Enable(), log.Enable(), runtime.Enable(),
		emulation.SetDeviceMetricsOverride(width, height, 1, width < 500),
		emulation.SetEmulatedMedia().WithFeatures(media))
	start := time.Now()
	p.run(chromedp.Navigate(address), chromedp.WaitVisible(`html[data-ready="yes"]`))
	p.took = time.Since(start)
	return p
}

func (p *tab) run(actions ...chromedp.Action) {
	p.Helper()
	if err := chromedp.Run(p.ctx, actions...); err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.Fatalf("%v; %s", err, p.problems)
	}
}

// js evaluates an expression.
func js[T any](p *tab, expression string) (out T) {
	p.Helper()
	p.run(chromedp.Evaluate(expression, &out, func(e *runtime.EvaluateParams) *runtime.EvaluateParams {
		return e.WithAwaitPromise(true)
	}))
	return out
}

// until waits for an expression to be true.
func (p *tab) until(expression string) {
	p.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if js[bool](p, expression) {
			return
		}
		if time.Now().After(end) {
			p.Fatalf("never: %s", expression)
		}
	}
}

// clean fails if something was reported on the console, or asked for from anywhere.
func (p *tab) clean() {
	p.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, problem := range p.problems {
		p.Error(problem)
	}
}

// shot writes a picture of an element, or of the whole page, to $REVIEW_SHOTS.
func (p *tab) shot(name, selector string) {
	p.Helper()
	p.write(os.Getenv("REVIEW_SHOTS"), name, selector)
}

func (p *tab) write(dir, name, selector string) {
	p.Helper()
	if dir == "" {
		return
	}
	js[bool](p, `[...document.querySelectorAll("nav, .tray")].every((e) => e.style.position = "static")`)
	var b []byte
	time.Sleep(300 * time.Millisecond)
	if selector == "" {
		p.run(chromedp.ActionFunc(func(ctx context.Context) (err error) {
			b, err = page.CaptureScreenshot().WithCaptureBeyondViewport(true).Do(ctx)
			return err
		}))
	} else {
		p.run(chromedp.Screenshot(selector, &b, chromedp.ByQuery))
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), b, 0o666); err != nil {
		p.Fatal(err)
	}
}

// picture is a shot that docs/review.md shows, too: $REVIEW_PICTURES is the folder where such are.
func (p *tab) picture(name, selector string) {
	p.Helper()
	p.shot(name, selector)
	p.write(os.Getenv("REVIEW_PICTURES"), "review-"+name, selector)
}

// click clicks the first button with a text.
func (p *tab) click(within, text string) {
	p.Helper()
	found := js[bool](p, fmt.Sprintf(`(() => {
		const b = [...document.querySelectorAll(%q)].find((e) => e.textContent.trim().startsWith(%q));
		if (b) b.click();
		return Boolean(b);
	})()`, within+" button", text))
	if !found {
		p.Fatalf("%s has no button %q", within, text)
	}
}

// choose chooses in the first list with a label.
func (p *tab) choose(within, label, value string) {
	p.Helper()
	found := js[bool](p, fmt.Sprintf(`(() => {
		const s = [...document.querySelectorAll(%q)].find((e) => e.labels[0].textContent === %q);
		if (!s) return false;
		s.value = %q;
		s.dispatchEvent(new Event("change"));
		return s.value === %q;
	})()`, within+" select", label, value, value))
	if !found {
		p.Fatalf("%s has no list %q with %q", within, label, value)
	}
}

func dark() *emulation.MediaFeature {
	return &emulation.MediaFeature{Name: "prefers-color-scheme", Value: "dark"}
}

// quickstart writes the page of the quickstart and returns its file.
func quickstart(t *testing.T, args ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "review.html")
	runexp(t, root, append([]string{"review", "artifacts/quickstart", "-o", file}, args...)...)
	return file
}

const (
	firstRows = `[...document.querySelectorAll("#board tbody tr")].slice(0, 3)
		.map((r) => r.cells[0].textContent).join()`
	drawn = `[...document.querySelectorAll("#maps .compare canvas")].every((c) => c.width > 1)`
)

// TestLeaderboard sorts, unfolds, filters, and goes from a number to its images.
func TestLeaderboard(t *testing.T) {
	p := open(t, quickstart(t), 1280, 900)
	if info, err := os.Stat(quickstart(t)); err != nil || info.Size() > 8e6 {
		t.Errorf("the page has %d bytes, more than 8 MB, with its maps at full size: %v", info.Size(), err)
	}
	if got, want := js[string](p, firstRows), "lrp,guided-backprop,abslrp"; got != want {
		t.Errorf("the first are %s, not %s", got, want)
	}
	if got := js[string](p, `document.querySelector("#board tbody tr").cells[1].textContent`); got != "2.17" {
		t.Errorf("lrp's mean rank is %s; that published is 2.17", got)
	}
	p.click("#board", "mean rank")
	if got, want := js[string](p, firstRows), "constant,random,rise"; got != want {
		t.Errorf("the last are %s, not %s", got, want)
	}
	p.click("#board", "mean rank")
	if n := js[int](p, `document.querySelectorAll("#board thead tr:last-child th").length`); n != 12 {
		t.Errorf("%d columns, not 12 cases", n)
	}
	ends := js[[]int](p, `[...Array(13).keys()].map((i) =>
		new Set([...document.querySelectorAll("#board tbody tr")].map((r) =>
			r.cells[i + 1].querySelector("button").firstChild.data.split(".")[1].length)).size)`)
	for i, n := range ends {
		if n != 1 {
			t.Errorf("the numbers of column %d have %d lengths behind the point", i+1, n)
		}
	}
	heats := `document.querySelectorAll("#board td.heat").length`
	if n := js[int](p, heats); n != 0 {
		t.Errorf("%d cells are coloured by default", n)
	}
	p.click("#leaderboard", "colours")
	if n := js[int](p, heats); n != 15*13 {
		t.Errorf("%d cells are coloured, not all of 15 methods", n)
	}
	p.shot("heat", "#board")
	p.click("#leaderboard", "colours")
	p.picture("leaderboard", "#leaderboard")
	p.choose("#leaderboard", "model", "vgg")
	if n := js[int](p, `document.querySelectorAll("#board thead tr:last-child th").length`); n != 3 {
		t.Errorf("%d columns for one model, not 3", n)
	}
	p.click("#board", "vgg\u00a0↑")
	if got := js[string](p, firstRows); !strings.HasPrefix(got, "guided-backprop,") {
		t.Errorf("by the first score %s come first", got)
	}
	p.run(chromedp.Click(`#board tbody tr:first-child .value`, chromedp.ByQuery))
	if n := js[int](p, `document.querySelectorAll("#items tbody tr").length`); n != 3 {
		t.Errorf("%d cases behind a mean rank, not 3", n)
	}
	p.run(chromedp.Click(`#items .value`, chromedp.ByQuery))
	if n := js[int](p, `document.querySelectorAll("#items li").length`); n != 24 {
		t.Errorf("%d images behind a number, not 24", n)
	}
	falling := `[...document.querySelectorAll("#items li strong")].every((e, i, a) =>
		!i || Number(a[i - 1].textContent) >= Number(e.textContent))`
	if !js[bool](p, falling) {
		t.Error("the images aren't from best to worst")
	}
	p.shot("items", "#items")
	p.clean()
}

// TestAnswer: the first screen has three sentences, the forest plot of the published table and the best of
// each case.
func TestAnswer(t *testing.T) {
	p := open(t, quickstart(t), 1280, 900)
	lead := js[string](p, `[...document.querySelectorAll("#answer .summary > div > p")]
		.map((e) => e.textContent).join(" ")`)
	if n := strings.Count(lead, ". ") + 1; n != 3 || !strings.HasPrefix(lead, "lrp ranks first of 15") ||
		!strings.Contains(lead, "lrp ranks first in 7 of 12 cases") {
		t.Errorf("the answer begins with %d sentences: %s", n, lead)
	}
	whole := js[string](p, `document.querySelector("#answer").textContent`)
	if !strings.Contains(whole, "The lead of the best over the second is confirmed in 2 of 12 cases.") {
		t.Error("the rest of the answer is lost")
	}
	forest := js[[]string](p, `[...document.querySelectorAll(".forest g title")].map((e) => e.textContent)`)
	if len(forest) != 15 || forest[0] != "lrp 4.037 (3.52 to 5.79)" ||
		!strings.HasPrefix(forest[14], "constant ") {
		t.Errorf("the forest plot has %q", forest)
	}
	best := js[[]string](p, `[...document.querySelectorAll("#winners tr")].map((r) =>
		[...r.cells].map((c) => c.textContent).join("|"))`)
	want := []string{"metric|vgg|vgg-bn|resnet|vit",
		"mas|guided-backprop|lrp +2|lrp +1|abslrp +7", "mass|integrated-gradients +2|lrp +1|lrp|lrp +4",
		"rise|guided-backprop +4|lrp +6|lrp +8|integrated-gradients +9"}
	for i, row := range want {
		if i >= len(best) || best[i] != row {
			t.Errorf("the best are %q, want %q", best, want)
			break
		}
	}
	bottom := js[float64](p, `document.querySelector(".summary").getBoundingClientRect().bottom`)
	if bottom > 900 {
		t.Errorf("the answer ends at %.0f px, below the first screen", bottom)
	}
	p.picture("answer", "#answer")
	p.clean()
}

// TestMaps flips through images, and compares two maps under a slider and blinking, by keyboard alone.
func TestMaps(t *testing.T) {
	p := open(t, quickstart(t), 1280, 900)
	p.until(drawn)
	if n := js[int](p, `document.querySelectorAll(".tiles figure").length`); n != 16 {
		t.Errorf("%d tiles, not the image and 15 maps", n)
	}
	image := `document.querySelector(".image-note strong").textContent`
	first := js[string](p, image)
	p.run(chromedp.KeyEvent("n"))
	if second := js[string](p, image); second == first {
		t.Errorf("n shows no other image than %s", first)
	}
	p.run(chromedp.KeyEvent("p"))
	if got := js[string](p, image); got != first {
		t.Errorf("p shows %s, not %s again", got, first)
	}
	note := js[string](p, `document.querySelector(".tiles figcaption").textContent`)
	if !strings.HasPrefix(note, first+"predicted ") || !strings.Contains(note, "p\u00a0=\u00a00.") {
		t.Errorf("below the image stands %q: no predicted class with its probability", note)
	}
	p.run(chromedp.ScrollIntoView("#maps", chromedp.ByQuery))
	p.until(`[...document.querySelectorAll("#maps .tiles canvas")].every((c) => c.width > 1)`)
	p.picture("maps", ".tiles")
	p.click("#maps .controls", "common scale")
	p.until(`document.querySelector("#maps > .note").textContent.includes("all maps")`)
	p.click("#maps .controls", "one method, every image")
	if n := js[int](p, `document.querySelectorAll(".tiles figure").length`); n != 24 {
		t.Errorf("%d tiles, not 24 images", n)
	}
	p.until(`[...document.querySelectorAll(".tiles figure")].every((e) => {
		const [a, b] = [...e.querySelectorAll("canvas")].map((c) => c.getBoundingClientRect());
		return a && b && a.top === b.top && a.right <= b.left;
	})`) // the image and its map side by side
	p.shot("images", "#maps")
	p.click("#maps .controls", "one image")
	p.click("#maps .controls", "own scale")
	p.choose("#maps .compare", "method of B", "deeplift")
	p.until(drawn)
	p.click(".compare", "slider")
	p.picture("slider", ".compare")
	p.run(chromedp.KeyEvent("b"))
	second := `document.querySelector(".compare .stage").classList.contains("second")`
	was := js[bool](p, second)
	p.run(chromedp.KeyEvent("b"))
	if js[bool](p, second) == was {
		t.Error("b doesn't blink")
	}
	p.clean()
}

// TestChosen: the maps chosen to be compared are marked A and B, and stay in sight; under a slider they are
// as wide as the window allows.
func TestChosen(t *testing.T) {
	p := open(t, quickstart(t), 1280, 900)
	p.run(chromedp.ScrollIntoView("#maps .tiles", chromedp.ByQuery))
	marks := `[...document.querySelectorAll(".tiles .chosen-map")].map((e) =>
		e.querySelector(".badge").textContent + " " + e.querySelector("strong").textContent).sort().join()`
	js[bool](p, `[...document.querySelectorAll(".tiles button.tile")].slice(2, 4)
		.every((e) => e.click() || true)`)
	if got := js[string](p, marks); got != "A occlusion-large,B occlusion-small" {
		t.Errorf("the maps marked are %q", got)
	}
	if text := js[string](p, `document.querySelector(".tray").textContent`); !strings.Contains(text,
		"Aocclusion-large vggBocclusion-small vgg") {
		t.Errorf("what is chosen is called %q", text)
	}
	p.run(chromedp.Evaluate(`scrollTo(0,
		document.querySelector(".tiles").getBoundingClientRect().top + scrollY - 60)`, nil))
	p.until(`document.querySelector(".tray").getBoundingClientRect().bottom <= innerHeight + 1`)
	p.click(".tray", "compare")
	p.click(".compare", "slider")
	p.until(drawn)
	p.until(`document.querySelector(".compare canvas").getBoundingClientRect().width > 700`)
	p.until(`(() => {
		const box = document.querySelector(".compare canvas").getBoundingClientRect();
		return box.height < innerHeight && box.right < innerWidth;
	})()`)
	p.clean()
}

// TestImages: the label stands below an image, a misclassified one is marked, and images are chosen and
// sorted.
func TestImages(t *testing.T) {
	p := open(t, quickstart(t), 1280, 900)
	text := js[string](p, `document.querySelector(".tiles figcaption").textContent`)
	if !strings.Contains(text, "label ") {
		t.Errorf("below the image stands %q, not its label", text)
	}
	p.choose("#maps", "model", "vit")
	p.choose("#maps", "images", "wrong")
	note := `document.querySelector(".image-note").textContent`
	if got := js[string](p, note); got != "image 1 of 1: a-000011 " {
		t.Errorf("misclassified: %q", got)
	}
	if text := js[string](p, `document.querySelector(".tiles .wrong").textContent`); text !=
		"✗ misclassified: it is dotted disc" {
		t.Errorf("the misclassified image is marked %q", text)
	}
	p.shot("wrong", "#maps .tiles")
	p.choose("#maps", "model", "vgg")
	if got := js[string](p, note); !strings.HasPrefix(got, "No image is such") {
		t.Errorf("of a net that is always right: %q", got)
	}
	p.choose("#maps", "model", "vit")
	p.choose("#maps", "images", "right")
	if got := js[string](p, note); !strings.HasPrefix(got, "image 1 of 23: ") {
		t.Errorf("rightly classified: %q", got)
	}
	p.choose("#maps", "images", "class dotted disc")
	if got := js[string](p, note); !strings.HasPrefix(got, "image 1 of 2: ") {
		t.Errorf("of one class: %q", got)
	}
	p.choose("#maps", "images", "")
	p.choose("#maps", "order", "lrp")
	p.click("#maps .controls", "one method, every image")
	p.choose("#maps", "method", "lrp")
	rising := `(() => {
		const list = [...document.querySelectorAll(".tiles figure .score")]
			.map((e) => parseFloat(e.textContent.replace("−", "-"))).filter((x) => !Number.isNaN(x));
		return list.length === 24 && list.every((x, i) => !i || list[i - 1] <= x);
	})()`
	if !js[bool](p, rising) {
		t.Error("the image with the worst score isn't first")
	}
	p.choose("#maps", "order", "lrp\nguided-backprop")
	p.click("#maps .controls", "one image")
	last := ""
	for range 3 {
		got := js[string](p, note)
		_, x, ok := strings.Cut(got, "difference of lrp and guided-backprop in rise-score.difference: ")
		if !ok || last != "" && x > last {
			t.Errorf("images by disagreement: %q after %s", got, last)
		} else {
			last = x
		}
		p.run(chromedp.KeyEvent("n"))
	}
	p.clean()
}

// TestReads: the page says which scores read magnitudes, and draws what a score reads.
func TestReads(t *testing.T) {
	dir := t.TempDir() // of few maps, which are shown at their own size
	runexp(t, root, "run", "experiments/quickstart.yaml", "--only", "method=saliency,deeplift",
		"--only", "model=vgg", "--limit", "4", "--quiet", "--out", dir)
	file := filepath.Join(dir, "review.html")
	runexp(t, root, "review", dir, "-o", file)
	p := open(t, file, 1280, 900)
	reads := js[string](p, `document.querySelector("#reads").textContent`)
	for _, part := range []string{"rise-score.difference", "mas.difference", "read magnitudes: ",
		" mass reads positive values alone."} {
		if !strings.Contains(reads, part) {
			t.Errorf("what scores read is %q", reads)
		}
	}
	note := `document.querySelector("#maps > .note").textContent`
	if got := js[string](p, note); !strings.Contains(got, "red and blue count alike.") {
		t.Errorf("below the maps stands %q", got)
	}
	blue := `(() => {
		const c = [...document.querySelectorAll(".tiles .tile-figure")]
			.find((e) => e.querySelector("strong").textContent === "deeplift").querySelector("canvas");
		const g = Object.assign(document.createElement("canvas"), {width: c.width, height: c.height})
			.getContext("2d", {willReadFrequently: true});
		g.drawImage(c, 0, 0);
		const {data} = g.getImageData(0, 0, c.width, c.height);
		let n = 0;
		for (let i = 0; i < data.length; i += 4) n += data[i + 2] > data[i] + 20;
		return n;
	})()`
	p.run(chromedp.ScrollIntoView("#maps .tiles", chromedp.ByQuery))
	p.until(blue + " > 0")
	p.click("#maps .controls", "what the score reads")
	if got := js[string](p, note); !strings.Contains(got, "which is drawn.") ||
		!strings.Contains(got, "dark is much") {
		t.Errorf("below the maps stands %q", got)
	}
	p.until(blue + " === 0")
	got := js[string](p, `[...document.querySelectorAll(".compare .picture")]
		.find((e) => e.dataset.name.startsWith("deeplift")).querySelector(".score").textContent`)
	if strings.Contains(got, "±") || !strings.Contains(got, " 0.00 … ") {
		t.Errorf("the ends of what is read are %q", got)
	}
	p.shot("read", ".tiles")
	p.clean()
}

// TestAddress: an address shows the view that it was copied from, and what a page hasn't got is left out.
func TestAddress(t *testing.T) {
	file := quickstart(t)
	p := open(t, file, 1280, 900)
	if hash := js[string](p, `location.hash`); hash != "" {
		t.Errorf("the address of the page as it opens has %q", hash)
	}
	p.click("#leaderboard", "colours")
	p.click("#board", "mean rank")
	p.choose("#leaderboard", "model", "vit")
	p.run(chromedp.Click(`#board tbody tr:nth-child(2) td:nth-child(3) .value`, chromedp.ByQuery))
	p.choose("#maps", "model", "vit")
	p.choose("#maps", "order", "lrp")
	p.choose("#maps", "images", "right")
	p.run(chromedp.KeyEvent("n"))
	p.click("#maps .controls", "common scale")
	p.choose("#maps .compare", "method of B", "rise")
	p.click(".compare", "slider")
	js[bool](p, `(() => {
		const s = document.querySelector(".compare input");
		s.value = 20;
		return s.dispatchEvent(new Event("input", {bubbles: true}));
	})()`)
	p.choose("#curves", "model", "resnet")
	p.click("#tables", "rank")
	time.Sleep(300 * time.Millisecond)
	seen := `[document.querySelector("#board").textContent, document.querySelector("#items h3").textContent,
		document.querySelector(".image-note").textContent, document.querySelector("#maps .tiles").textContent,
		document.querySelector(".compare .stage").textContent,
		document.querySelector(".compare .stage").className,
		document.querySelector(".compare .stage").style.cssText,
		document.querySelector("#tables table").textContent,
		[...document.querySelectorAll("select")].map((s) => s.value).join(),
		document.querySelectorAll("#board .heat").length].join("\n")`
	was, hash := js[string](p, seen), js[string](p, `location.hash`)
	for _, part := range []string{"board.heat=true", "maps.only=right", "compare.cut=20"} {
		if !strings.Contains(hash, part) {
			t.Errorf("the address %q lacks %s", hash, part)
		}
	}
	p.clean()
	q := open(t, file+hash, 1280, 900)
	if is := js[string](q, seen); is != was {
		t.Errorf("the address shows\n%s\n\nnot\n%s", is, was)
	}
	q.clean()
	q = open(t, file+"#maps&maps.item=%22none&maps.order=x%0Ay&maps.stage=__proto__&board.sort=null"+
		"&board.scores=[1]&compare.cut=-3&%E0&curves%20tables=[[[&board.filters=[[]]"+
		"&maps.fixed=[[%22model%22]]", 1280, 900)
	q.until(`document.querySelectorAll("#maps .tiles figure").length === 16`)
	q.clean()
}

// TestClasses: below a map of another class than the predicted one stand both.
func TestClasses(t *testing.T) {
	dir := t.TempDir()
	runexp(t, root, "run", "experiments/quickstart.yaml", "--only", "method=saliency,lrp",
		"--only", "model=vgg", "--limit", "4", "--quiet", "--out", dir,
		"--set", "axes.method.lrp.with.target=predicted:2")
	file := filepath.Join(dir, "review.html")
	runexp(t, root, "review", dir, "-o", file)
	p := open(t, file, 1280, 900)
	notes := js[[]string](p, `[...document.querySelectorAll(".tiles figcaption")]
		.map((e) => e.textContent)`)
	for _, note := range notes {
		switch {
		case strings.HasPrefix(note, "lrp"):
			if !strings.Contains(note, "explained ") || !strings.Contains(note, "; predicted ") {
				t.Errorf("below a map of the second best class stands %q", note)
			}
		case strings.HasPrefix(note, "saliency"):
			if strings.Contains(note, "explained") || !strings.Contains(note, "predicted ") {
				t.Errorf("below a map of the best class stands %q", note)
			}
		}
	}
	if len(notes) != 3 {
		t.Errorf("%d tiles, not the image and two maps", len(notes))
	}
	p.shot("classes", "#maps")
	p.clean()
}

// TestKeyboard reaches everything by the tab key: no part of the page needs a pointer.
func TestKeyboard(t *testing.T) {
	p := open(t, quickstart(t), 1280, 900)
	for range 60 {
		p.run(chromedp.KeyEvent(kb.Tab))
		if js[bool](p, `document.activeElement.matches(".value[aria-label$='show its images']")`) {
			p.run(chromedp.KeyEvent(kb.Enter))
			p.until(`document.querySelectorAll("#items li").length === 24`)
			p.until(`document.activeElement.tagName === "H3"`)
			break
		}
	}
	for range 4 {
		p.run(chromedp.KeyEvent(kb.Tab))
	}
	p.run(chromedp.KeyEvent(kb.Enter)) // an image opens its maps
	p.until(`document.activeElement.id === "maps-title"`)
	p.clean()
}

// TestAgainst compares two runs with another parameter of a method, and two revisions.
func TestAgainst(t *testing.T) {
	dir := t.TempDir()
	was, is := filepath.Join(dir, "was"), filepath.Join(dir, "is")
	part := []string{"run", "experiments/quickstart.yaml", "--only", "method=saliency,lrp,grad-cam",
		"--only", "model=vgg,resnet", "--limit", "6", "--quiet", "--out"}
	runexp(t, root, append(part, was)...)
	runexp(t, root, append(part, is, "--set", "axes.method.lrp.with.epsilon=0.5")...)
	file := filepath.Join(dir, "review.html")
	runexp(t, root, "review", is, "--against", was, "-o", file)
	p := open(t, file, 1280, 900)
	text := js[string](p, `document.querySelector("#changes").textContent`)
	for _, part := range []string{"lrp is ", "maps.epsilon0.250.5", "Scores", "interval, paired", "Figures",
		"Maps"} {
		if !strings.Contains(text, part) {
			t.Errorf("the changes don't tell of %s", part)
		}
	}
	n := js[int](p, `document.querySelectorAll("#changed tbody tr").length`)
	p.click("#changes", "those whose interval")
	if m := js[int](p, `document.querySelectorAll("#changed tbody tr").length`); n == 0 || m > n {
		t.Errorf("%d of %d changes exclude 0", m, n)
	}
	p.picture("changes", "#changed")
	if text := js[string](p, `document.querySelector("#curves .removed").textContent`); text == "" {
		t.Error("next to another version's maps nothing is shown of what curves replaced")
	}
	p.click("#changes", "all")
	js[bool](p, `[...document.querySelectorAll("#changes details")].every((d) => d.open = true)`)
	p.click("#changes .viewer", "slider")
	p.shot("what-changed", "#changes")
	p.click("#changes", "maps[method=lrp,model=vgg]")
	p.until(drawn)
	names := js[string](p, `[...document.querySelectorAll("#maps .compare figure")]
		.map((f) => f.dataset.name).join()`)
	if want := "lrp vgg before,lrp vgg now"; names != want {
		t.Errorf("the maps compared are %s, not %s", names, want)
	}
	notes := js[[]string](p, `[...document.querySelectorAll("#maps .compare .score")]
		.map((e) => e.textContent)`)
	for _, note := range notes { // score · class, p = probability · ends · size
		if strings.Count(note, " · ") != 3 || !strings.Contains(note, ", p\u00a0=\u00a0") {
			t.Errorf("below a map stands %q, not its score, class, probability and ends", note)
		}
	}
	if len(notes) != 2 || notes[0] == notes[1] {
		t.Errorf("below the maps before and now stand %q", notes)
	}
	same := `(() => {
		const [a, b] = document.querySelectorAll("#maps .compare canvas");
		return a.toDataURL() === b.toDataURL();
	})()`
	if js[bool](p, same) {
		t.Error("the map before is the one of now")
	}
	p.shot("before", "#maps .compare")
	p.clean()
	open(t, file, 390, 900, dark()).looks("against-dark-390")
	open(t, file, 1280, 900, dark()).looks("against-dark-1280")
	p = open(t, quickstart(t, "--against", "HEAD"), 1280, 900)
	if js[string](p, `document.querySelector("#changes").textContent`) == "" {
		t.Error("a revision isn't compared")
	}
	p.clean()
}

// TestAccessible runs axe on the page, light and dark, narrow and wide.
func TestAccessible(t *testing.T) {
	axe, err := os.ReadFile(filepath.Join("node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Skip("there is no axe-core: make test-review fetches it")
	}
	file := quickstart(t)
	for _, media := range [][]*emulation.MediaFeature{nil, {dark()}} {
		for _, width := range []int64{1280, 390} {
			p := open(t, file, width, 900, media...)
			p.run(chromedp.Evaluate(string(axe), nil))
			p.click("#leaderboard", "colours")
			p.axe(fmt.Sprintf("%d px wide, dark %v", width, media != nil))
			p.run(chromedp.Click("#board tbody .value", chromedp.ByQuery))
			p.run(chromedp.Click("#items .value", chromedp.ByQuery))
			p.click("#maps .controls", "one method, every image")
			p.click("#maps .viewer", "slider")
			p.axe(fmt.Sprintf("%d px wide, dark %v, images of a number and of a method", width, media != nil))
			p.clean()
		}
	}
}

// axe fails if the page isn't accessible as it is.
func (p *tab) axe(state string) {
	p.Helper()
	time.Sleep(300 * time.Millisecond)
	found := js[string](p, `axe.run().then((r) => JSON.stringify(r.violations.map((v) =>
		[v.id, v.help, v.nodes.length, v.nodes[0].html, v.nodes[0].failureSummary])))`)
	var violations [][]any
	if err := json.Unmarshal([]byte(found), &violations); err != nil {
		p.Fatal(err)
	}
	for _, v := range violations {
		p.Errorf("%s: %v", state, v)
	}
}

// looks takes pictures of all parts, and checks that nothing is wider than the page.
func (p *tab) looks(name string) {
	p.Helper()
	if over := js[int](p, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
		p.Errorf("%s: the page is %d px too wide", name, over)
	}
	js[bool](p, `dispatchEvent(new Event("beforeprint"))`)
	p.until(`[...document.querySelectorAll("#maps .tiles canvas")].every((c) => c.width > 1)`)
	for _, part := range js[[]string](p, `[...document.querySelectorAll("section[id]")].map((e) => e.id)`) {
		p.shot(name+"-"+part, "#"+part)
	}
	p.clean()
}

// TestLooks takes pictures of all parts, and checks that nothing is wider than the page.
func TestLooks(t *testing.T) {
	file := quickstart(t)
	for name, media := range map[string][]*emulation.MediaFeature{"light": nil, "dark": {dark()}} {
		for _, width := range []int64{1280, 390} {
			open(t, file, width, 900, media...).looks(fmt.Sprintf("%s-%d", name, width))
		}
	}
	p := open(t, file, 1280, 900)
	p.until(`[...document.querySelectorAll("#maps canvas")].every((c) => c.width > 1)`) // unseen ones, too
	var pdf []byte
	p.run(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		pdf, _, err = page.PrintToPDF().WithPrintBackground(true).WithLandscape(true).Do(ctx)
		return err
	}))
	if dir := os.Getenv("REVIEW_SHOTS"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, "print.pdf"), pdf, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if http.DetectContentType(pdf) != "application/pdf" {
		t.Error("the page doesn't print")
	}
	// What a print opens is drawn at once.
	if n := js[int](p, `(() => {
		dispatchEvent(new Event("beforeprint"));
		return [...document.querySelectorAll("#tables details[open]")]
			.filter((d) => !d.querySelector("td")).length;
	})()`); n != 0 {
		t.Errorf("%d tables are printed without their rows", n)
	}
}

// TestPapers takes pictures of the pages of folders in $REVIEW_FOLDERS, separated by colons, with what the
// store has of them.
func TestPapers(t *testing.T) {
	for _, dir := range filepath.SplitList(os.Getenv("REVIEW_FOLDERS")) {
		file := filepath.Join(t.TempDir(), "review.html")
		runexp(t, root, "review", dir, "-o", file)
		for name, media := range map[string][]*emulation.MediaFeature{"light": nil, "dark": {dark()}} {
			for _, width := range []int64{1280, 390} {
				p := open(t, file, width, 900, media...)
				p.looks(fmt.Sprintf("%s-%s-%d", filepath.Base(dir), name, width))
			}
		}
	}
}

// TestPrevious opens the page of a folder that the previous build made.
func TestPrevious(t *testing.T) {
	dir := t.TempDir()
	archive := filepath.Join(root, "cmd", "runexp", "testdata", "previous", "made.tar.gz")
	if out, err := exec.Command("tar", "-xzf", archive, "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("tar: %v\n%s", err, out)
	}
	runexp(t, dir, "review", "folder", "--store", "store", "-o", "review.html")
	p := open(t, filepath.Join(dir, "review.html"), 1280, 900)
	if n := js[int](p, `document.querySelectorAll("#board tbody tr").length`); n < 30 {
		t.Errorf("the leaderboard has %d rows, not one for each method", n)
	}
	text := js[string](p, `document.querySelector(".left").textContent`)
	if !strings.Contains(text, "no maps") {
		t.Errorf("of maps that aren't kept, the page says %q", text)
	}
	p.clean()
}

// TestHostile: labels with markup are texts, and long ones leave room for the numbers.
func TestHostile(t *testing.T) {
	dir := t.TempDir()
	names := []string{"</script><script>alert(1)</script>", "<img src=x onerror=alert(2)>",
		strings.Repeat("a", 90), "a name of many words that goes on and on for longer than a screen is wide"}
	cells := ""
	for i, name := range names {
		cell, err := json.Marshal("s[method=" + name + "]")
		if err != nil {
			t.Fatal(err)
		}
		cells += fmt.Sprintf(`{"cell":%s,"definition":"0123456789abcdef","direction":"higher","mean":%d,"n":2,`+
			`"score":"scores","tolerance":0,"undefined":0}`+"\n", cell, i)
	}
	for file, text := range map[string]string{"cells/s.jsonl": cells,
		"experiment.yaml": "name: x\ntitle: '<h1>" + strings.Repeat("t", 200) + "'\npublish: [s]\n"} {
		file = filepath.Join(dir, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "review.html")
	runexp(t, root, "review", dir, "-o", file)
	for _, width := range []int64{1280, 390} {
		p := open(t, file, width, 900) // a dialogue would stop it
		if over := js[int](p, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
			t.Errorf("the page is %d px too wide", over)
		}
		rows := js[[]string](p, `[...document.querySelectorAll("#board tbody th")].map((e) => e.textContent)`)
		for i, name := range names {
			if got := rows[len(rows)-1-i]; got != name {
				t.Errorf("row %d is called %q, not %q", i, got, name)
			}
		}
		end := js[float64](p, `document.querySelector("#board .value").getBoundingClientRect().right`)
		cut := js[int](p, `[...document.querySelectorAll("#board tbody th")]
			.filter((e) => e.scrollWidth > e.clientWidth).length`)
		if cut > 0 {
			t.Errorf("%d px wide, %d names reach into the numbers", width, cut)
		}
		if end > float64(width) {
			t.Errorf("%d px wide, the first number ends at %.0f", width, end)
		}
		p.shot(fmt.Sprintf("hostile-%d", width), "")
		p.clean()
	}
}

// TestLarge opens the page of 200 images, 20 methods and 5 nets within two seconds, as a person waits for it.
func TestLarge(t *testing.T) {
	file := filepath.Join(t.TempDir(), "review.html")
	cmd := exec.Command("go", "test", "-count", "1", "-run", "^TestLarge$", "./pipeline/webpage")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "REVIEW_LARGE="+file)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p := open(t, file, 1280, 900)
	p.until(`[...document.querySelectorAll("#maps .compare canvas")].every((c) => c.width > 1)`)
	ready := js[float64](p, `performance.getEntriesByType("navigation")[0].domComplete`)
	t.Logf("ready after %.0f ms", ready)
	if ready > 2000 {
		t.Errorf("the page is ready after %.0f ms, more than 2 s", ready)
	}
	p.clean()
}

// greyPixels are the positions of the pixels that are grey in what a curve replaced, of an image of 64×64.
const greyPixels = `(() => {
	const c = document.querySelector("#curves .removed canvas");
	const g = Object.assign(document.createElement("canvas"), {width: 64, height: 64})
		.getContext("2d", {willReadFrequently: true});
	g.imageSmoothingEnabled = false;
	g.drawImage(c, 0, 0, 64, 64);
	const {data} = g.getImageData(0, 0, 64, 64);
	return [...Array(4096).keys()].filter((i) => [0, 1, 2].every((k) => data[4 * i + k] === 140));
})()`

// TestRemoved: at a point of a curve stands an image without the pixels that were replaced there: by the map
// itself those that have the largest magnitudes, or in the order lerf the smallest.
func TestRemoved(t *testing.T) {
	dir := t.TempDir()
	runexp(t, root, "get", "experiments/quickstart.yaml", "maps[method=lrp,model=vgg]", "-o", dir)
	file, err := os.ReadFile(filepath.Join(dir, "maps.npy"))
	if err != nil {
		t.Fatal(err)
	}
	values := make([]float64, 64*64) // of the first image's map, behind the head of the file
	for i := range values {
		bits := binary.LittleEndian.Uint32(file[128+4*i:])
		values[i] = math.Abs(float64(math.Float32frombits(bits)))
	}
	p := open(t, quickstart(t), 1280, 900)
	p.run(chromedp.ScrollIntoView("#curves", chromedp.ByQuery), chromedp.Focus("#curves .chart"))
	caption := `document.querySelector("#curves .removed figcaption").textContent`
	for _, order := range []string{"morf", "lerf"} {
		p.choose("#curves", "order", order)
		p.run(chromedp.Focus("#curves .chart"))
		for range 10 {
			p.run(chromedp.KeyEvent(kb.ArrowLeft))
		}
		p.until(greyPixels + ".length === 0")
		for k, n := range []int{410, 819, 1229, 1638, 2048} {
			p.run(chromedp.KeyEvent(kb.ArrowRight))
			p.until(fmt.Sprintf("%s.length === %d", greyPixels, n))
			p.ordered(values, js[[]int](p, greyPixels), order == "morf")
			got := js[string](p, caption)
			first := map[string]string{"morf": "most", "lerf": "least"}[order]
			want := fmt.Sprintf("without the %s relevant %d0 %% of the pixels (%d of 4096); grey: these, "+
				"where the net saw zero after normalisation", first, k+1, n)
			if !strings.HasPrefix(got, "lrp, a-000000: probability 0.") || !strings.HasSuffix(got, want) {
				t.Errorf("%d grey pixels are called %q, not %q", n, got, want)
			}
		}
	}
	p.choose("#curves", "order", "morf")
	p.run(chromedp.Focus("#curves .chart"))
	for range 3 {
		p.run(chromedp.KeyEvent(kb.ArrowLeft))
	}
	p.until(greyPixels + ".length === 819")
	p.run(chromedp.Evaluate(`document.activeElement.blur()`, nil))
	p.picture("removed", "#curves")
	p.run(chromedp.Focus("#curves .chart"), chromedp.KeyEvent(kb.ArrowUp))
	if got := js[string](p, caption); strings.HasPrefix(got, "lrp,") {
		t.Errorf("the line above is called %q", got)
	}
	at := js[[]float64](p, `(() => {
		const box = document.querySelector("#curves .chart").getBoundingClientRect();
		return [box.left + 0.3 * box.width, box.top + 0.2 * box.height];
	})()`)
	p.run(chromedp.MouseEvent(input.MouseMoved, at[0], at[1]))
	got := js[string](p, caption)
	if !strings.HasPrefix(got, "constant,") && !strings.HasPrefix(got, "random,") {
		t.Errorf("the line under the pointer is called %q", got)
	}
	p.clean()
}

// TestRemovedUnits: what isn't inserted yet is grey, and regions and segments are replaced as a whole. The
// stages of two curves are ids of an axis.
func TestRemovedUnits(t *testing.T) {
	dir := t.TempDir()
	nets, err := filepath.Abs(filepath.Join(root, "experiments", "quickstart"))
	if err != nil {
		t.Fatal(err)
	}
	text := "name: x\nstages:\n" +
		"  images: {uses: dataset/shapes, with: {count: 2, seed: 1000007}}\n" +
		"  segments: {uses: perturb/segments, in: {images: images}, with: {cell: 16}}\n" +
		"  model: {uses: model/onnx, with: {path: " + filepath.Join(nets, "vgg.onnx") + ", preset: half}}\n" +
		"  maps: {uses: attribute/saliency, in: {model: model, images: images}}\n" +
		"  in: {uses: perturb/insertion, in: {model: model, images: images, maps: maps}, " +
		"with: {unit: region, region: 8, steps: 4}}\n" +
		"  out: {uses: perturb/deletion, " +
		"in: {model: model, images: images, maps: maps, segments: segments}, " +
		"with: {unit: segment, substrate: channel-mean, steps: 4}}\n" +
		"  plot: {uses: report/curves, in: {curves: {way: {in: in, out: out}}}, over: all, " +
		"with: {line: way}}\npublish: [plot]\n"
	if err := os.WriteFile(filepath.Join(dir, "x.yaml"), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	runexp(t, dir, "run", "x.yaml", "--quiet", "--store", "store", "--out", "folder")
	runexp(t, dir, "review", "folder", "--store", "store", "-o", "review.html")
	p := open(t, filepath.Join(dir, "review.html"), 1280, 900)
	p.run(chromedp.ScrollIntoView("#curves", chromedp.ByQuery), chromedp.Focus("#curves .chart"))
	caption := `document.querySelector("#curves .removed figcaption").textContent`
	for range 9 {
		p.run(chromedp.KeyEvent(kb.ArrowLeft))
	}
	line := func(name string) { // the upper or the lower one
		for _, key := range []string{kb.ArrowUp, kb.ArrowDown} {
			if !strings.HasPrefix(js[string](p, caption), name+",") {
				p.run(chromedp.KeyEvent(key))
			}
		}
	}
	line("in")
	for k := range 5 {
		p.until(fmt.Sprintf("%s.length === %d", greyPixels, 4096-1024*k))
		got := js[string](p, caption)
		want := fmt.Sprintf("with the most relevant %d %% of the regions (%d of 64) inserted; grey: the "+
			"others, where the net saw the blurred image", 25*k, 16*k)
		if !strings.HasPrefix(got, "in, a-000000: probability ") || !strings.HasSuffix(got, want) {
			t.Errorf("the image is called %q, not %q", got, want)
		}
		p.run(chromedp.KeyEvent(kb.ArrowRight))
	}
	line("out")
	p.until(greyPixels + ".length === 4096")
	got := js[string](p, caption)
	if !strings.Contains(got, "without the most relevant 100 % of the segments (") ||
		!strings.HasSuffix(got, "grey: these, where the net saw the mean of each channel") {
		t.Errorf("the image without segments is called %q", got)
	}
	p.clean()
}

// ordered fails unless the chosen values are the largest, or the smallest: those equal to a value that isn't
// chosen may be.
func (p *tab) ordered(values []float64, chosen []int, largest bool) {
	p.Helper()
	in := map[int]bool{}
	for _, i := range chosen {
		in[i] = true
	}
	low, high := math.Inf(1), math.Inf(-1) // of those at the wrong end
	for i, v := range values {
		if in[i] == largest {
			low = min(low, v)
		} else {
			high = max(high, v)
		}
	}
	if low < high {
		p.Errorf("of %d pixels one of %g is taken before one of %g", len(chosen), low, high)
	}
}
