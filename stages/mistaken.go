package stages

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// ErrPointer is the cause of [OpenFile]'s error for a pointer, which a version control system leaves in
// place of a file that it keeps elsewhere.
var ErrPointer = errors.New("the file itself isn't here")

// Mistaken recognises, by its first bytes, a file that people often have in place of the one that they
// need: a pointer of Git LFS, a page or message of a server, a model in another format. It returns an error
// that says how to get the right file, or nil for other files. Readers call it when they can't read a file.
func Mistaken(head []byte) error {
	if err := pointer(head); err != nil {
		return err
	}
	for _, k := range known {
		if at := head[min(k.at, len(head)):]; bytes.HasPrefix(at, []byte(k.magic)) {
			return errors.New(k.is)
		}
	}
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	for _, k := range texts {
		if k.begin.Match(text[:min(len(text), 200)]) {
			return errors.New(k.is)
		}
	}
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return errors.New(zipped(head))
	case len(head) > 9 && head[8] == '{' && bytes.Equal(head[3:8], make([]byte, 5)):
		return errors.New("weights as safetensors, without a graph: export the model to ONNX")
	case len(text) > 0 && (text[0] == '{' || text[0] == '['):
		return fmt.Errorf("JSON, such as a server's message in place of a file: %s", firstWords(text))
	}
	return nil
}

// longestPointer is the largest size of a pointer.
const longestPointer = 1 << 10

// lfs finds the size of the file for which a pointer of Git LFS stands.
var lfs = regexp.MustCompile(`\nsize (\d+)`)

func pointer(head []byte) error {
	for _, begin := range []string{"version https://git-lfs.github.com/",
		"version https://hawser.github.com/",
		"version http://git-media.io/"} {
		if !bytes.HasPrefix(head, []byte(begin)) {
			continue
		}
		of := "a file"
		if m := lfs.FindSubmatch(head); m != nil {
			of += fmt.Sprintf(" of %s bytes", m[1])
		}
		return fmt.Errorf("a pointer of Git LFS to %s, %w: git lfs pull fetches it", of, ErrPointer)
	}
	if bytes.HasPrefix(head, []byte("/annex/objects/")) {
		return fmt.Errorf("a pointer of git-annex, %w: git annex get fetches it", ErrPointer)
	}
	return nil
}

// known are kinds of files by their first bytes, or by bytes at an offset.
var known = []struct {
	at        int
	magic, is string
}{
	{0, "\x89HDF\r\n\x1a\n", "HDF5, as Keras writes it: convert the model to ONNX, by tf2onnx"},
	{4, "TFL3", "TensorFlow Lite: convert the model to ONNX, by tf2onnx"},
	{4, "ORTM", "ONNX Runtime's own format: take the .onnx file that it was made from"},
	{0, "ftrt", "an engine of TensorRT, for one GPU: take the .onnx file that it was made from"},
	{0, "ptrt", "an engine of TensorRT, for one GPU: take the .onnx file that it was made from"},
	{0, "GGUF", "GGUF, without a graph: export the model to ONNX"},
	{0, "\x80\x02", "a pickle of Python, such as PyTorch's weights: export the model to ONNX"},
	{0, "\x80\x03", "a pickle of Python: export the model to ONNX"},
	{0, "\x80\x04", "a pickle of Python: export the model to ONNX"},
	{0, "\x80\x05", "a pickle of Python: export the model to ONNX"},
	{0, "\x1f\x8b", "packed by gzip: unpack it, or name it .gz"},
	{0, "BZh", "packed by bzip2: unpack it"},
	{0, "\xfd7zXZ\x00", "packed by xz: unpack it"},
	{0, "(\xb5/\xfd", "packed by Zstandard: unpack it"},
	{0, "7z\xbc\xaf'\x1c", "a 7z archive: unpack it"},
	{0, "Rar!\x1a\x07", "a RAR archive: unpack it"},
	{257, "ustar", "a tar archive: unpack it"},
	{0, "%PDF-", "a PDF"},
	{0, "\xff\xd8\xff", "a JPEG picture"},
	{0, "\x89PNG\r\n\x1a\n", "a PNG picture"},
	{0, "GIF8", "a GIF picture"},
	{0, "II*\x00", "a TIFF picture"},
	{0, "MM\x00*", "a TIFF picture"},
	{4, "ftypavif", "an AVIF picture"},
	{4, "ftyphei", "a HEIC picture"},
	{4, "ftypmif1", "a HEIC picture"},
	{0, "\xff\x0a", "a JPEG XL picture"},
	{0, "\x00\x00\x00\x0cJXL ", "a JPEG XL picture"},
}

// texts are kinds of files by their first text after spaces.
var texts = []struct {
	begin *regexp.Regexp
	is    string
}{
	{regexp.MustCompile(`(?i)^(<!--.*?-->\s*)?<(!doctype\s+html|html|head|body)\b`),
		"a web page, not the file: download the file itself, where GitHub's addresses have /raw/ and " +
			"Hugging Face's /resolve/ in place of /blob/"},
	{regexp.MustCompile(`(?s)^<\?xml.*<net\b`),
		"OpenVINO's graph: take the .onnx file that it was made from"},
	{regexp.MustCompile(`(?s)^(<\?xml.*)?<Error>`),
		"a server's message of an error, not the file: download it again"},
	{regexp.MustCompile(`^<svg\b`), "an SVG picture"},
	{regexp.MustCompile(`^<\?xml\b`), "XML"},
}

// zipped describes the contents of a .zip archive, by the name of its first file.
func zipped(head []byte) string {
	name := ""
	if len(head) > 30 {
		n := int(head[26]) | int(head[27])<<8
		name = string(head[30:min(30+n, len(head))])
	}
	switch {
	case strings.Contains(name, "data.pkl") || strings.Contains(name, ".data/") ||
		strings.HasSuffix(name, "/version") || strings.HasSuffix(name, "/byteorder"):
		return "PyTorch's own format: export the model by torch.onnx.export"
	case name == "metadata.json" || name == "config.json":
		return "Keras' own format: convert the model to ONNX, by tf2onnx"
	case strings.HasSuffix(name, ".npy"):
		return "arrays of NumPy"
	}
	return "a .zip archive: unpack it"
}

// firstWords returns the beginning of a text in one line.
func firstWords(text []byte) string {
	const shown = 80
	r := []rune(strings.Join(strings.Fields(strings.ToValidUTF8(string(text[:min(len(text), 400)]), "?")),
		" "))
	if len(r) > shown {
		return fmt.Sprintf("%q …", string(r[:shown]))
	}
	return fmt.Sprintf("%q", string(r))
}
