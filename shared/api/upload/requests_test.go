package upload_test

import (
	"encoding/json"
	"os/exec"
	"testing"

	"ferry/shared/api/apitest"
)

// program uploads in each way that people send files with requests, and prints the names
// that were stored.
const program = `
import io, json, requests, sys
base, user, password, name = sys.argv[1:]
auth = (user, password)
session = requests.Session()
session.trust_env = False
def pieces():
    yield b"con"
    yield b"tent"
answers = [
    session.post(base + "/upload", auth=auth, files={"file": (name, b"content")}),
    session.post(base + "/upload", auth=auth, files={"file": (name, io.BytesIO(b"content"), "text/plain")}, data={"comment": "x"}),
    session.post(base + "/upload", auth=auth, files=[("file", (name, b"content"))], params={"d": user}),
    session.post(base + "/upload", auth=auth, data=b"content", params={"file": name}),
    session.post(base + "/upload", auth=auth, data=io.BytesIO(b"content"), params={"file": name}),
    session.post(base + "/upload", auth=auth, data=pieces(), params={"file": name}),
    session.put(base + "/upload", auth=auth, data=b"content", params={"file": name}),
]
files = []
for a in answers:
    a.raise_for_status()
    newest = a.json()["files"][0]
    content = session.get(newest["linkURL"]).content.decode()
    files.append({"name": newest["name"], "id": newest["id"], "content": content})
bearer = session.post(base + "/auth/login", auth=auth).json()["bearer"]
refused = session.post(base + "/upload", headers={"Authorization": "Bearer " + bearer}, data=b"content")
files.append({"id": refused.status_code})
refused = session.post(base + "/upload", auth=(user, "wrong"), files={"file": (name, b"x" * 20_000_000)})
files.append({"id": refused.status_code})
print(json.dumps(files))
`

func TestPythonRequestsUploadsAFile(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	if err := exec.CommandContext(t.Context(), python, "-c", "import requests").Run(); err != nil {
		t.Skip("the Python module requests is not installed: pip install -r infra/ci/requirements.txt")
	}
	c := uploadBegin(t)
	const name = `the "best" 🎉 été.txt`
	out, err := exec.CommandContext(t.Context(), python, "-c", program, c.Base, c.name, c.password, name).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var stored []struct {
		apitest.File
		Content string
	}
	if err := json.Unmarshal(out, &stored); err != nil || len(stored) != 9 {
		t.Fatalf("%v: %s", err, out)
	}
	refusal := int64(401)
	if c.InStack() { // the gateway takes no such body
		refusal = 413
	}
	if stored[7].ID != 400 || stored[8].ID != refusal {
		t.Errorf("a body without a name: status %d, want 400; a wrong password: status %d, want %d", stored[7].ID, stored[8].ID, refusal)
	}
	for i, f := range stored[:7] {
		if f.Name != name || f.Content != "content" || f.ID != int64(i+1) {
			t.Errorf("upload %d was stored as %+v", i+1, f)
		}
	}
}
