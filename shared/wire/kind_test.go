package wire

import (
	"strings"
	"testing"

	"ferry/shared/boot/expect"
)

func TestAFilesTypeGoesWithItsKind(t *testing.T) {
	t.Parallel()
	for ext, mediaType := range types {
		expect.Equal(t, ext+" by its type", FileKind("a", mediaType), FileKind("a."+ext, ""))
		if kind := PreviewKind("a."+ext, ""); kind != "" {
			expect.Equal(t, ext+" shown by its type", PreviewKind("a", mediaType), kind)
		}
	}
}

func TestAKindFollowsFromTheNameOrTheType(t *testing.T) {
	t.Parallel()
	for of, want := range map[string][2]string{
		"a.JPG|": {"image", "image"}, "a.psd|": {"image", ""}, "a|image/png; x=y": {"image", "image"}, "a.mpeg|": {"film", ""},
		"a|audio/mpeg": {"sound", "sound"}, "a.ogg|": {"sound", "sound"}, "a.html|": {"text", ""}, "a|text/plain": {"text", "text"},
		"a.yml|application/octet-stream": {"text", "text"}, "a|application/x-tar": {"bundle", ""}, "a.exe|": {"file", ""}, "a|": {"file", ""},
	} {
		name, mediaType, _ := strings.Cut(of, "|")
		got := [2]string{FileKind(name, mediaType), PreviewKind(name, mediaType)}
		expect.Equal(t, of, got, want)
	}
	expect.Equal(t, "the type of an entry", TypeOf("photos/A.JPEG"), "image/jpeg")
	expect.Equal(t, "the type of another", TypeOf("a.jpeg/b"), "")
}
