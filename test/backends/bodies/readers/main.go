// Reads a list of requests, and writes for each what Go's net/http and encoding/json take for the value of `email`, or of `user.email`, as NAMES has it.
package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
)

type asked struct {
	Types []string `json:"types"`
	Query string   `json:"query"`
	Body  []byte   `json:"body"`
}

type login struct {
	Email string `json:"email"`
	User  struct {
		Email string `json:"email"`
	} `json:"user"`
}

var isNested = os.Getenv("NAMES") == "user.email"

func (one login) account() string {
	if isNested {
		return one.User.Email
	}
	return one.Email
}

func requestOf(one asked) *http.Request {
	url := "http://x/"
	if one.Query != "" {
		url += "?x"
	}
	request, err := http.NewRequest("POST", url, bytes.NewReader(one.Body))
	if err != nil {
		panic(err)
	}
	request.URL.RawQuery = one.Query
	request.Header["Content-Type"] = one.Types
	return request
}

func ask(one asked) [][]byte {
	found := [][]byte{}
	form := requestOf(one)
	_ = form.ParseMultipartForm(1 << 20)
	fields := []string{"email"}
	if isNested {
		fields = []string{"user[email]", "user.email"}
	}
	for _, field := range fields {
		for _, value := range form.Form[field] {
			found = append(found, []byte(value))
		}
	}
	var single login
	if json.NewDecoder(bytes.NewReader(one.Body)).Decode(&single); single.account() != "" {
		found = append(found, []byte(single.account()))
	}
	var batch []login
	if json.NewDecoder(bytes.NewReader(one.Body)).Decode(&batch) == nil {
		for _, each := range batch {
			found = append(found, []byte(each.account()))
		}
	}
	return found
}

func main() {
	var requests []asked
	if err := json.NewDecoder(os.Stdin).Decode(&requests); err != nil {
		panic(err)
	}
	found := make([][][]byte, len(requests))
	for i, one := range requests {
		found[i] = ask(one)
	}
	json.NewEncoder(os.Stdout).Encode(found)
}
