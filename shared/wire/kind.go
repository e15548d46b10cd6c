package wire

import (
	"path"
	"slices"
	"strings"
)

// FileKind returns what a file is by its name and media type: image, film, sound, text, bundle (an archive) or file.
func FileKind(name, mediaType string) string {
	general, special, _ := strings.Cut(typeAlone(mediaType), "/")
	switch general {
	case "image":
		return "image"
	case "video":
		return "film"
	case "audio":
		return "sound"
	}
	ext := extension(name)
	for kind, all := range extensions {
		if slices.Contains(strings.Fields(all), ext) {
			return kind
		}
	}
	switch {
	case general == "text", special == "pdf", special == "json":
		return "text"
	case strings.Contains(special, "zip"), strings.Contains(special, "tar"):
		return "bundle"
	}
	return "file"
}

// PreviewKind returns how browsers can show a file of this name and media type without running
// anything in it: image, film, sound, text, or "" for not at all.
func PreviewKind(name, mediaType string) string {
	kind := FileKind(name, mediaType)
	mediaType = typeAlone(mediaType)
	if mediaType == "" || mediaType == "application/octet-stream" {
		mediaType = strings.ToLower(name[strings.LastIndexByte(name, '.')+1:])
	}
	special := mediaType[strings.IndexByte(mediaType, '/')+1:]
	if slices.Contains(strings.Fields(shown[kind]), special) {
		return kind
	}
	return ""
}

// TypeOf returns the media type of a file in a bundle by its name, or "".
func TypeOf(name string) string { return types[extension(name)] }

// extension returns the extension of a file's name in lower case, without its dot.
func extension(name string) string {
	return strings.TrimPrefix(strings.ToLower(path.Ext(name)), ".")
}

// typeAlone returns a media type in lower case, without its charset.
func typeAlone(mediaType string) string {
	kind, _, _ := strings.Cut(strings.ToLower(mediaType), ";")
	return strings.TrimSpace(kind)
}

// extensions lists the file name extensions of each kind.
var extensions = map[string]string{
	"image":  "jpg jpeg png gif webp avif svg heic heif tif tiff bmp nef cr2 dng arw psd",
	"film":   "mp4 m4v mov webm mkv avi mpg mpeg",
	"sound":  "mp3 m4a ogg oga opus wav flac aac",
	"text":   "txt md csv tsv log json xml yaml yml html htm pdf doc docx odt rtf xls xlsx ods ppt pptx odp tex epub",
	"bundle": "zip tar gz tgz bz2 xz zst 7z rar",
}

// shown lists what browsers show of each kind, by extension or by the second part of the media type.
var shown = map[string]string{
	"image": "jpeg jpg png gif webp avif svg svg+xml bmp",
	"film":  "mp4 m4v x-m4v webm ogg quicktime mov",
	"sound": "mpeg mp3 mp4 m4a x-m4a aac ogg opus wav x-wav flac webm",
	"text":  "plain txt csv tsv json log md markdown yaml yml",
}

// types lists media types by extension. Package mime would also ask the machine.
var types = map[string]string{
	"txt":  "text/plain; charset=utf-8",
	"log":  "text/plain; charset=utf-8",
	"md":   "text/plain; charset=utf-8",
	"csv":  "text/plain; charset=utf-8",
	"html": "text/html; charset=utf-8",
	"htm":  "text/html; charset=utf-8",
	"jpg":  "image/jpeg",
	"jpeg": "image/jpeg",
	"png":  "image/png",
	"gif":  "image/gif",
	"webp": "image/webp",
	"avif": "image/avif",
	"svg":  "image/svg+xml",
	"mp3":  "audio/mpeg",
	"m4a":  "audio/mp4",
	"ogg":  "audio/ogg",
	"wav":  "audio/wav",
	"mp4":  "video/mp4",
	"m4v":  "video/mp4",
	"webm": "video/webm",
	"mov":  "video/quicktime",
	"json": "application/json",
	"pdf":  "application/pdf",
	"zip":  "application/zip",
}
