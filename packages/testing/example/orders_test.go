package orders

import (
	"net/http"
	"os"
	"strings"
	"testing"
)

// Run it by `npx petstore-test -- go test ./...`.
func TestAnEmptyPetstoreTakesACategory(t *testing.T) {
	if _, err := http.Post(os.Getenv("PETSTORE_ADMIN_URL")+"/reset", "", nil); err != nil {
		t.Fatal(err)
	}
	category := strings.NewReader(`{"name": "dogs"}`)
	answer, err := http.Post(os.Getenv("PETSTORE_URL")+"/categories", "application/json", category)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusCreated || answer.Header.Get("Location") != "/categories/1" {
		t.Errorf("answered %s with Location %q", answer.Status, answer.Header.Get("Location"))
	}
}
