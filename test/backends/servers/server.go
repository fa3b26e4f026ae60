package main

import (
	"io"
	"net/http"
	"os"
	"strings"
)

func reached(w http.ResponseWriter, name string) {
	w.Header().Set("X-Reached", name)
	io.WriteString(w, "reached")
}

func main() {
	mux := http.NewServeMux()
	mux.HandleFunc("/login", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" {
			reached(w, "login")
		}
	})
	mux.HandleFunc("/api/v1/export/", func(w http.ResponseWriter, r *http.Request) {
		id := strings.TrimPrefix(r.URL.Path, "/api/v1/export/")
		if (r.Method == "GET" || r.Method == "HEAD") && id != "" && !strings.Contains(id, "/") {
			reached(w, "export")
		}
	})
	mux.HandleFunc("/admin/", func(w http.ResponseWriter, _ *http.Request) { reached(w, "admin") })
	if err := http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), mux); err != nil {
		panic(err)
	}
}
