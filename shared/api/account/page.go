package account

import (
	_ "embed"
	"fmt"
	"html"
	"net/http"
	"strings"

	"ferry/shared/api"
	"ferry/shared/notify"
)

//go:embed page.html
var pageHTML string

// page is the content of a page. If the text of the button is empty, there is none.
type page struct {
	lang, title, text, button string
	undo                      bool // the button resumes mail
}

// words are the texts of the pages in one language. Each %s stands for an address.
type words struct {
	ask, asked, stop     string
	stopped, none, again string
	refused, unreachable string
	noLink, whole        string
	sorry, later         string
}

// stopPage shows whether an address gets mail. The owner's wish comes first, as only that
// can be changed on the page.
func stopPage(lang, address string, e notify.Suppression) page {
	w := texts[lang]
	switch {
	case e.Stopped != 0:
		return page{lang, w.stopped, fmt.Sprintf(w.none, address), w.again, true}
	case e.Refused != "": // mail came back or was called spam; only an operator can change that
		return page{lang, w.refused, fmt.Sprintf(w.unreachable, address), w.stop, false}
	}
	return page{lang, w.ask, fmt.Sprintf(w.asked, address), w.stop, false}
}

func (p page) write(w http.ResponseWriter, status int) error {
	form := ""
	if p.button != "" {
		undo := ""
		if p.undo {
			undo = `<input type="hidden" name="undo" value="1">`
		}
		form = `<form method="post">` + undo + "<button>" + p.button + "</button></form>\n"
	}
	w.Header().Set("Content-Language", p.lang)
	return api.WritePage(w, status, "form-action 'self'; base-uri 'none'; ", strings.NewReplacer(
		"{lang}", p.lang, "{title}", p.title, "{text}", html.EscapeString(p.text), "{form}", form,
	).Replace(pageHTML))
}

var texts = map[string]words{
	"it": {
		ask:     "Non ricevere più queste e-mail?",
		asked:   "%s non riceverà più e-mail da Ferry sui file. I codici per una nuova password arrivano comunque.",
		stop:    "Non inviarmene più",
		stopped: "Nessun’altra e-mail",
		none:    "%s non riceve più e-mail da Ferry sui file. Chi ti invia un file lo saprà.",
		again:   "Annulla: riceverle di nuovo",
		refused: "Nessuna e-mail a questo indirizzo", unreachable: "%s non riceve e-mail da Ferry: sono tornate indietro o sono state segnalate come spam.",
		noLink: "Questo link non è valido", whole: "Apri il link intero, così come sta in fondo all’e-mail.",
		sorry: "Qualcosa è andato storto", later: "Riprova tra qualche minuto.",
	},
	"es": {
		ask:     "¿Dejar de recibir estos correos?",
		asked:   "%s no recibirá más correos de Ferry sobre archivos. Los códigos para una nueva contraseña seguirán llegando.",
		stop:    "No enviarme más",
		stopped: "No habrá más correos",
		none:    "%s ya no recibe correos de Ferry sobre archivos. Quien te envíe un archivo lo sabrá.",
		again:   "Deshacer: recibirlos de nuevo",
		refused: "No se envían correos a esta dirección", unreachable: "%s no recibe correos de Ferry: fueron devueltos o marcados como no deseados.",
		noLink: "Este enlace no es válido", whole: "Abre el enlace completo, tal como está al final del correo.",
		sorry: "Algo ha salido mal", later: "Vuelve a intentarlo en unos minutos.",
	},
	"fr": {
		ask:     "Ne plus recevoir ces e-mails\u00a0?",
		asked:   "%s ne recevra plus d’e-mails de Ferry au sujet de fichiers. Les codes pour un nouveau mot de passe arrivent toujours.",
		stop:    "Ne plus m’en envoyer",
		stopped: "Plus aucun e-mail",
		none:    "%s ne reçoit plus d’e-mails de Ferry au sujet de fichiers. Toute personne qui vous envoie un fichier en est informée.",
		again:   "Annuler\u00a0: les recevoir à nouveau",
		refused: "Aucun e-mail à cette adresse", unreachable: "%s ne reçoit pas d’e-mails de Ferry\u00a0: ils ont été renvoyés ou signalés comme indésirables.",
		noLink: "Ce lien n’est pas valable", whole: "Ouvrez le lien entier, tel qu’il figure à la fin de l’e-mail.",
		sorry: "Une erreur s’est produite", later: "Réessayez dans quelques minutes.",
	},
	"de": {
		ask:     "Keine solchen E-Mails mehr?",
		asked:   "%s bekommt dann keine E-Mails von Ferry über Dateien mehr. Codes für ein neues Passwort kommen weiterhin an.",
		stop:    "Keine mehr schicken",
		stopped: "Keine E-Mails mehr",
		none:    "%s bekommt keine E-Mails von Ferry über Dateien mehr. Wer dir eine Datei schickt, erfährt das.",
		again:   "Rückgängig: wieder bekommen",
		refused: "Keine E-Mails an diese Adresse", unreachable: "%s bekommt keine E-Mails von Ferry: Sie kamen zurück oder wurden als Spam gemeldet.",
		noLink: "Dieser Link ist ungültig", whole: "Öffne den ganzen Link, so wie er am Ende der E-Mail steht.",
		sorry: "Etwas ist schiefgegangen", later: "Versuche es in ein paar Minuten noch einmal.",
	},
	"en": {
		ask:     "Stop these e-mails?",
		asked:   "%s will get no more e-mails from Ferry about files. Codes for a new password still arrive.",
		stop:    "Send me no more",
		stopped: "No more e-mails",
		none:    "%s gets no e-mails from Ferry about files any more. Anyone who sends you a file is told.",
		again:   "Undo: get them again",
		refused: "No e-mails to this address", unreachable: "%s gets no e-mails from Ferry: they came back, or were reported as spam.",
		noLink: "This link is not valid", whole: "Open the whole link, exactly as it is at the end of the e-mail.",
		sorry: "Something went wrong", later: "Try again in a few minutes.",
	},
}
