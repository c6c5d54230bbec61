package browser

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// texts writes the page of texts in several scripts, some of them hostile, and returns its file.
func texts(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "review.html")
	cmd := exec.Command("go", "test", "-count", "1", "-run", "^TestTexts$", "./pipeline/webpage")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "REVIEW_TEXTS="+file)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return file
}

const (
	firstText = `document.querySelector("#texts .tokens")`
	slide     = `(() => {
		const s = document.querySelector("#texts input[type=range]");
		s.value = 50;
		s.dispatchEvent(new Event("input"));
		return document.querySelector("#texts .response").textContent;
	})()`
)

// TestTexts checks what a person sees of texts: words in colours, the value and the rank of the one under the
// pointer in all maps, and the model's response as tokens are removed.
func TestTexts(t *testing.T) {
	p := open(t, texts(t), 1280, 900)
	if n := js[int](p, `document.querySelectorAll("#texts .text-figure").length`); n != 3 {
		t.Errorf("%d maps of a text are shown, want 3", n)
	}
	if got := js[string](p, firstText+`.textContent`); got != "I hate this movie and I never want to see it "+
		"again! However, I loved the leading actor so much!" {
		t.Errorf("the text is %q", got)
	}
	about := js[string](p, `(() => {
		const e = document.querySelectorAll("#texts .tokens")[1].querySelectorAll(".token")[1];
		e.dispatchEvent(new PointerEvent("pointerover", {bubbles: true}));
		return [...document.querySelectorAll("#texts .about")].map((a) => a.textContent).join("|") + "|" +
			document.querySelectorAll("#texts .now").length;
	})()`)
	if parts := strings.Split(about, "|"); len(parts) != 4 || parts[3] != "3" ||
		!strings.HasPrefix(parts[0], "hate: ") || !strings.HasSuffix(parts[2], ", rank 2 of 23") {
		t.Errorf("about the word: %s", about)
	}
	if got := js[string](p, slide); got != "without 12 of 23 tokens: probability 0.60" {
		t.Errorf("in the middle: %s", got)
	}
	if n := js[int](p, firstText+`.querySelectorAll(".gone").length`); n != 12 {
		t.Errorf("%d tokens are gone, want 12", n)
	}
	p.choose("#texts", "response", "logit")
	if got := js[string](p, `document.querySelector("#texts .response").textContent`); !strings.HasSuffix(got,
		"logit −2.00") {
		t.Errorf("the response is %s", got)
	}
	p.shot("texts", "#texts")
	p.click("#texts", "special tokens")
	if got := js[string](p, firstText+`.textContent`); !strings.HasPrefix(got, "[CLS]I hate") {
		t.Errorf("with special tokens the text is %q", got)
	}
	p.click("#texts", "next text")
	if got := js[string](p, `getComputedStyle(`+firstText+`).direction`); got != "rtl" {
		t.Errorf("Hebrew runs %s", got)
	}
	p.shot("texts-hebrew", "#texts")
	p.click("#texts", "next text")
	p.shot("texts-arabic", "#texts")
	p.click("#texts", "next text")
	if got := js[string](p, firstText+`.textContent`); !strings.Contains(got, "</script><script>alert(1)") ||
		!strings.Contains(got, `\u202eevil\u202c zero\u200bwidth`) {
		t.Errorf("the hostile text is %q", got)
	}
	p.shot("texts-hostile", "#texts")
	p.clean()
}

// TestTextOfScore checks that the scores of texts lead to their texts, those of a text that isn't on the page
// nowhere.
func TestTextOfScore(t *testing.T) {
	p := open(t, texts(t), 1280, 900)
	p.run(chromedp.Click(`#board tbody tr:first-child .value`, chromedp.ByQuery))
	if js[int](p, `document.querySelectorAll("#items li").length`) == 0 { // a mean rank has its cases first
		p.run(chromedp.Click(`#items .value`, chromedp.ByQuery))
	}
	got := js[string](p, `[...document.querySelectorAll("#items li .id")].map((e) => e.tagName + " " +
		e.textContent).join("|")`)
	if got != "BUTTON review-2|SPAN review-99|BUTTON review-0" {
		t.Fatalf("the texts are %s", got)
	}
	p.click("#items", "review-2")
	got = js[string](p, `document.activeElement.id + "|" +
		document.querySelector("#texts .image-note").textContent.split(";")[0]`)
	if got != "texts-title|text 3 of 4: review-2" {
		t.Errorf("the score leads to %s", got)
	}
	p.clean()
}

// TestTextsAccessible checks that the page of texts is accessible, and not wider than a telephone.
func TestTextsAccessible(t *testing.T) {
	file := texts(t)
	axe, err := os.ReadFile(filepath.Join("node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Skip("there is no axe-core: make test-review fetches it")
	}
	p := open(t, file, 390, 900, dark())
	p.looks("texts-narrow")
	js[bool](p, string(axe)+"; true")
	p.axe("texts, dark")
}
