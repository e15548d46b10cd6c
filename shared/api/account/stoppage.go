package account

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"strconv"
	"strings"
)

const pageHTML = `<!doctype html>
<html lang="{lang}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
body { font: 1rem/1.5 system-ui, sans-serif; margin: 0; min-height: 100vh; display: grid; place-items: center; background: #f3f5f7; color: #17212b }
main { background: #fff; padding: 2.5rem; border-radius: .75rem; max-width: 32rem; margin: 1rem; box-shadow: 0 1px 4px #0002; text-align: center }
h1 { font-size: 1.25rem; margin: 0 0 .5rem }
p { margin: 0; color: #55626f; overflow-wrap: anywhere }
button { margin-top: 1.5rem; padding: .75rem 2rem; border: 0; border-radius: .5rem; background: #0b5cad; color: #fff; font: inherit; font-weight: 600; cursor: pointer }
button:hover, button:focus-visible { background: #084a8c }
@media (prefers-color-scheme: dark) { body { background: #10161c; color: #e6ebf0 } main { background: #1b242d } p { color: #a3b0bd } }
</style>
</head>
<body>
<main>
<h1>{title}</h1>
<p role="status">{text}</p>
{form}</main>
</body>
</html>
`

// page is one page: what it says and, unless Button is empty, what can be done.
type page struct {
	Lang, Title, Text, Button string
	Undo                      bool // what the button does
}

// words are what the pages say in one language. Each %s stands for an address.
type words struct {
	lang string

	ask, asked, stop     string
	stopped, none, again string
	refused, unreachable string
	noLink, whole        string
	sorry, later         string
}

func (w words) page(s state, address string) page {
	p := page{Lang: w.lang}
	switch s {
	case coming:
		p.Title, p.Text, p.Button = w.ask, fmt.Sprintf(w.asked, address), w.stop
	case stopped:
		p.Title, p.Text, p.Button, p.Undo = w.stopped, fmt.Sprintf(w.none, address), w.again, true
	case refused:
		p.Title, p.Text, p.Button = w.refused, fmt.Sprintf(w.unreachable, address), w.stop // an operator may let them come again
	}
	return p
}

// html is the page. What is not ours, the address in its text, is but text.
func (p page) html() string {
	form := ""
	if p.Button != "" {
		undo := ""
		if p.Undo {
			undo = `<input type="hidden" name="undo" value="1">`
		}
		form = `<form method="post">` + undo + "<button>" + p.Button + "</button></form>\n"
	}
	return strings.NewReplacer("{lang}", p.Lang, "{title}", p.Title, "{text}", html.EscapeString(p.Text), "{form}", form).Replace(pageHTML)
}

func writePage(w http.ResponseWriter, status int, p page) error {
	text := p.html()
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(text)))
	h.Set("Content-Language", p.Lang)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer") // the address has the token in it
	h.Set("X-Robots-Tag", "noindex")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	w.WriteHeader(status)
	_, err := io.WriteString(w, text)
	return err
}

func wordsOf(lang string) words {
	switch strings.ToLower(lang) {
	case "it":
		return words{
			lang:    "it",
			ask:     "Non ricevere più queste e-mail?",
			asked:   "%s non riceverà più e-mail da Ferry sui file. I codici per una nuova password arrivano comunque.",
			stop:    "Non inviarmene più",
			stopped: "Nessun’altra e-mail",
			none:    "%s non riceve più e-mail da Ferry sui file. Chi ti invia un file lo saprà.",
			again:   "Annulla: riceverle di nuovo",
			refused: "Nessuna e-mail a questo indirizzo", unreachable: "%s non riceve e-mail da Ferry: sono tornate indietro o sono state segnalate come spam.",
			noLink: "Questo link non è valido", whole: "Apri il link intero, così come sta in fondo all’e-mail.",
			sorry: "Qualcosa è andato storto", later: "Riprova tra qualche minuto.",
		}
	case "es":
		return words{
			lang:    "es",
			ask:     "¿Dejar de recibir estos correos?",
			asked:   "%s no recibirá más correos de Ferry sobre archivos. Los códigos para una nueva contraseña seguirán llegando.",
			stop:    "No enviarme más",
			stopped: "No habrá más correos",
			none:    "%s ya no recibe correos de Ferry sobre archivos. Quien te envíe un archivo lo sabrá.",
			again:   "Deshacer: recibirlos de nuevo",
			refused: "No se envían correos a esta dirección", unreachable: "%s no recibe correos de Ferry: fueron devueltos o marcados como no deseados.",
			noLink: "Este enlace no es válido", whole: "Abre el enlace completo, tal como está al final del correo.",
			sorry: "Algo ha salido mal", later: "Vuelve a intentarlo en unos minutos.",
		}
	case "fr":
		return words{
			lang:    "fr",
			ask:     "Ne plus recevoir ces e-mails\u00a0?",
			asked:   "%s ne recevra plus d’e-mails de Ferry au sujet de fichiers. Les codes pour un nouveau mot de passe arrivent toujours.",
			stop:    "Ne plus m’en envoyer",
			stopped: "Plus aucun e-mail",
			none:    "%s ne reçoit plus d’e-mails de Ferry au sujet de fichiers. Toute personne qui vous envoie un fichier en est informée.",
			again:   "Annuler\u00a0: les recevoir à nouveau",
			refused: "Aucun e-mail à cette adresse", unreachable: "%s ne reçoit pas d’e-mails de Ferry\u00a0: ils ont été renvoyés ou signalés comme indésirables.",
			noLink: "Ce lien n’est pas valable", whole: "Ouvrez le lien entier, tel qu’il figure à la fin de l’e-mail.",
			sorry: "Une erreur s’est produite", later: "Réessayez dans quelques minutes.",
		}
	case "de":
		return words{
			lang:    "de",
			ask:     "Keine solchen E-Mails mehr?",
			asked:   "%s bekommt dann keine E-Mails von Ferry über Dateien mehr. Codes für ein neues Passwort kommen weiterhin an.",
			stop:    "Keine mehr schicken",
			stopped: "Keine E-Mails mehr",
			none:    "%s bekommt keine E-Mails von Ferry über Dateien mehr. Wer dir eine Datei schickt, erfährt das.",
			again:   "Rückgängig: wieder bekommen",
			refused: "Keine E-Mails an diese Adresse", unreachable: "%s bekommt keine E-Mails von Ferry: Sie kamen zurück oder wurden als Spam gemeldet.",
			noLink: "Dieser Link ist ungültig", whole: "Öffne den ganzen Link, so wie er am Ende der E-Mail steht.",
			sorry: "Etwas ist schiefgegangen", later: "Versuche es in ein paar Minuten noch einmal.",
		}
	default:
		return words{
			lang:    "en",
			ask:     "Stop these e-mails?",
			asked:   "%s will get no more e-mails from Ferry about files. Codes for a new password still arrive.",
			stop:    "Send me no more",
			stopped: "No more e-mails",
			none:    "%s gets no e-mails from Ferry about files any more. Whoever sends you a file is told so.",
			again:   "Undo: get them again",
			refused: "No e-mails to this address", unreachable: "%s gets no e-mails from Ferry: they came back, or were reported as spam.",
			noLink: "This link is not valid", whole: "Open the whole link, as it stands at the end of the e-mail.",
			sorry: "Something went wrong", later: "Try again in a few minutes.",
		}
	}
}
