package webpage

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
)

//go:embed assets
var assets embed.FS

// scripts are the files of the page's script, in their order. A page of texts has texts.js
// behind them, and ready.js comes last.
var scripts = []string{"dom", "state", "address", "scores", "images", "maps", "compare", "removed", "curves",
	"tables", "answer", "changes", "main"}

// head begins the page. Its policy lets a browser run only the script whose digest it names, and load
// nothing but images that are in the page.
const head = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; ` +
	`script-src 'sha256-%s'; style-src 'sha256-%s'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<title>%s</title>
<style>%s</style>
</head>
<body>
<noscript>This page shows its data with a script, which is switched off.</noscript>
<main id="page"></main>
`

// writeHTML writes the page. Its data is in script elements of types that no browser runs.
func writeHTML(w io.Writer, m *model) error {
	var script strings.Builder
	script.WriteString("\"use strict\";\n(() => {\n")
	parts, styles := scripts, []string{"page"}
	if m.Texts != nil {
		parts, styles = append(slices.Clone(scripts), "texts"), append(styles, "texts")
	}
	for _, name := range append(slices.Clone(parts), "ready") {
		b, err := assets.ReadFile("assets/" + name + ".js")
		if err != nil {
			return err
		}
		script.Write(b)
	}
	script.WriteString("})();\n")
	var style []byte
	for _, name := range styles {
		b, err := assets.ReadFile("assets/" + name + ".css")
		if err != nil {
			return err
		}
		style = append(style, b...)
	}
	title := m.Title
	if title == "" {
		title = m.Name
	}
	fmt.Fprintf(w, head, digest(script.String()), digest(string(style)), html.EscapeString(title), style)
	data, err := json.Marshal(m) // escapes <, > and &, so that no text in it ends its element
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "<script type=\"application/json\" id=\"model\">%s</script>\n", data)
	for i, b := range m.blobs {
		const blob = "<script type=\"text/plain\" id=\"blob%d\">%s</script>\n"
		if _, err := fmt.Fprintf(w, blob, i, base64.StdEncoding.EncodeToString(b)); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(w, "<script>%s</script>\n</body>\n</html>\n", script.String())
	return err
}

// digest returns the hash by which the policy names a script or style.
func digest(text string) string {
	d := sha256.Sum256([]byte(text))
	return base64.StdEncoding.EncodeToString(d[:])
}
