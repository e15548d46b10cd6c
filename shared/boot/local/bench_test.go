package local_test

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"ferry/shared/boot/apitest"
)

// BenchmarkUpload measures a small upload, without waits for network and disk.
func BenchmarkUpload(b *testing.B) {
	s := apitest.New(b)
	s.AddUser("demo", "a password to try")
	bearer := s.Login("demo", "a password to try")
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	part, _ := w.CreateFormFile("file", "small.bin")
	io.WriteString(part, strings.Repeat("x", 4096))
	w.Close()
	h := s.Service.Handler()
	request := func() {
		r := httptest.NewRequest("POST", "/v1/upload", bytes.NewReader(form.Bytes()))
		r.Header.Set("Content-Type", w.FormDataContentType())
		r.Header.Set("Authorization", "Bearer "+bearer)
		rec := httptest.NewRecorder()
		if h.ServeHTTP(rec, r); rec.Code != http.StatusOK {
			b.Fatal(rec.Code, rec.Header())
		}
	}
	for range 200 {
		request()
	}
	b.ReportAllocs()
	b.SetParallelism(8)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			request()
		}
	})
}

// BenchmarkDownload measures a small download.
func BenchmarkDownload(b *testing.B) {
	s := apitest.New(b)
	s.AddUser("demo", "a password to try")
	e := s.Put(s.Login("demo", "a password to try"), "file=x", strings.Repeat("x", 4096))
	h := s.Service.Handler()
	b.ReportAllocs()
	b.SetParallelism(8)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			rec := httptest.NewRecorder()
			if h.ServeHTTP(rec, httptest.NewRequest("GET", strings.TrimPrefix(e.Files[0].LinkURL, s.Root), nil)); rec.Code != http.StatusOK {
				b.Fatal(rec.Code, rec.Header())
			}
		}
	})
}
