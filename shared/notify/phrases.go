package notify

import (
	"fmt"
	"strings"
	"time"
)

// phrases are what Ferry says in one language. Each %s stands for a name.
type phrases struct {
	lang string

	linkSubject string // sender, file
	linkIntro   string // sender
	from        string
	file        string
	size        string
	until       string
	linkHere    string
	download    string
	noLogin     string
	writes      string // sender
	linkFooter  string // sender
	stop        string

	// For text messages, in the GSM alphabet alone: others cost double.
	shared      string // sender, file
	sharedShort string // sender

	receiptSubject string // file
	receiptIntro   string
	when           string
	sentTo         string // recipient
	link           string // the word
	ownLink        string
	receiptFooter  string

	pinSubject string
	pinIntro   string // user
	pinValid   string // so many minutes
	pinFooter  string

	colon   string    // between a label and its value
	decimal string    // separator
	minutes [2]string // one, several
	bytes   [2]string // one, several
	unit    string    // the letter behind k, M, G, T
	date    func(time.Time) string
}

// say returns the phrases of a language, or those of English.
func say(lang string) phrases {
	primary, _, _ := strings.Cut(strings.ToLower(strings.ReplaceAll(lang, "_", "-")), "-")
	switch primary {
	case "it":
		return italian()
	case "es":
		return spanish()
	case "fr":
		return french()
	case "de":
		return german()
	}
	return english()
}

func english() phrases {
	return phrases{
		lang:        "en",
		linkSubject: "%s sent you a file: %s",
		linkIntro:   "%s sent you a file.",
		file:        "File", size: "Size", until: "Available until",
		linkHere:       "Download it here:",
		download:       "Download",
		writes:         "%s writes:",
		linkFooter:     "You get this e-mail because %s sent you a file with Ferry, a file-transfer service. If you do not know who that is, do not open the file.",
		shared:         `%s sent you "%s":`,
		sharedShort:    "%s sent you a file:",
		pinSubject:     "Your code for a new password",
		pinIntro:       "Someone asked for a new password for the Ferry user %s. This code confirms it:",
		pinValid:       "The code is valid for %s from the request.",
		pinFooter:      "If it was not you, ignore this message: the password stays as it is. Give the code to nobody.",
		from:           "From",
		noLogin:        "The download asks for no account and no password.",
		stop:           "Stop e-mails like this one",
		receiptSubject: "Your file was downloaded: %s",
		receiptIntro:   "Your file was downloaded for the first time.",
		when:           "Downloaded",
		sentTo:         "sent to %s",
		link:           "Link",
		ownLink:        "the one in your list of files",
		receiptFooter:  "You get this e-mail because you asked for it with the upload. A link can be passed on: it may have been somebody else.",
		minutes:        [2]string{"minute", "minutes"},
		colon:          ": ", decimal: ".", bytes: [2]string{"byte", "bytes"}, unit: "B",
		date: func(t time.Time) string { return t.Format("2 January 2006, 15:04 MST") },
	}
}

func italian() phrases {
	return phrases{
		lang:        "it",
		linkSubject: "%s ti ha inviato un file: %s",
		linkIntro:   "%s ti ha inviato un file.",
		file:        "File", size: "Dimensione", until: "Scadenza",
		linkHere:       "Scaricalo qui:",
		download:       "Scarica",
		writes:         "%s scrive:",
		linkFooter:     "Ricevi questa e-mail perché %s ti ha inviato un file con Ferry, un servizio per il trasferimento di file. Se non sai chi sia, non aprire il file.",
		shared:         `%s ti ha inviato "%s":`,
		sharedShort:    "%s ti ha inviato un file:",
		pinSubject:     "Il tuo codice per una nuova password",
		pinIntro:       "È stata chiesta una nuova password per l’utente Ferry %s. Questo codice la conferma:",
		pinValid:       "Il codice vale %s dalla richiesta.",
		pinFooter:      "Se non l’hai chiesta tu, ignora questo messaggio: la password resta com’è. Non dare il codice a nessuno.",
		from:           "Da",
		noLogin:        "Per scaricarlo non servono né un account né una password.",
		stop:           "Non ricevere più e-mail come questa",
		receiptSubject: "Il tuo file è stato scaricato: %s",
		receiptIntro:   "Il tuo file è stato scaricato per la prima volta.",
		when:           "Primo download",
		sentTo:         "inviato a %s",
		link:           "Link",
		ownLink:        "quello nel tuo elenco dei file",
		receiptFooter:  "Ricevi questa e-mail perché l’hai richiesta al momento del caricamento. Un link si può passare ad altri: potrebbe essere stato qualcun altro.",
		minutes:        [2]string{"minuto", "minuti"},
		colon:          ": ", decimal: ",", bytes: [2]string{"byte", "byte"}, unit: "B",
		date: func(t time.Time) string {
			return fmt.Sprintf("%d %s %d, %s", t.Day(), nth(t.Month(), "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre"), t.Year(), t.Format("15:04 MST"))
		},
	}
}

func spanish() phrases {
	return phrases{
		lang:        "es",
		linkSubject: "%s te ha enviado un archivo: %s",
		linkIntro:   "%s te ha enviado un archivo.",
		file:        "Archivo", size: "Tamaño", until: "Disponible hasta el",
		linkHere:       "Descárgalo aquí:",
		download:       "Descargar",
		writes:         "%s escribe:",
		linkFooter:     "Recibes este correo porque %s te ha enviado un archivo con Ferry, un servicio de transferencia de archivos. Si no sabes quién es, no abras el archivo.",
		shared:         `%s te ha enviado "%s":`,
		sharedShort:    "%s te ha enviado un archivo:",
		pinSubject:     "Tu código para una nueva contraseña",
		pinIntro:       "Se ha solicitado una nueva contraseña para el usuario %s de Ferry. Este código la confirma:",
		pinValid:       "El código es válido durante %s desde la solicitud.",
		pinFooter:      "Si no has sido tú, ignora este mensaje: la contraseña no cambia. No compartas el código con nadie.",
		from:           "De",
		noLogin:        "Para descargarlo no hace falta ni cuenta ni contraseña.",
		stop:           "Dejar de recibir correos como este",
		receiptSubject: "Tu archivo se ha descargado: %s",
		receiptIntro:   "Tu archivo se ha descargado por primera vez.",
		when:           "Descargado el",
		sentTo:         "enviado a %s",
		link:           "Enlace",
		ownLink:        "el de tu lista de archivos",
		receiptFooter:  "Recibes este correo porque lo pediste al subir el archivo. Un enlace se puede pasar a otros: puede haber sido otra persona.",
		minutes:        [2]string{"minuto", "minutos"},
		colon:          ": ", decimal: ",", bytes: [2]string{"byte", "bytes"}, unit: "B",
		date: func(t time.Time) string {
			return fmt.Sprintf("%d de %s de %d, %s", t.Day(), nth(t.Month(), "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre"), t.Year(), t.Format("15:04 MST"))
		},
	}
}

func french() phrases {
	return phrases{
		lang:        "fr",
		linkSubject: "%s vous a envoyé un fichier\u00a0: %s",
		linkIntro:   "%s vous a envoyé un fichier.",
		file:        "Fichier", size: "Taille", until: "Disponible jusqu’au",
		linkHere:       "Téléchargez-le ici\u00a0:",
		download:       "Télécharger",
		writes:         "%s écrit\u00a0:",
		linkFooter:     "Vous recevez cet e-mail parce que %s vous a envoyé un fichier avec Ferry, un service de transfert de fichiers. Si vous ne savez pas de qui il s’agit, n’ouvrez pas le fichier.",
		shared:         `%s vous a envoyé "%s":`,
		sharedShort:    "%s vous a envoyé un fichier:",
		pinSubject:     "Votre code pour un nouveau mot de passe",
		pinIntro:       "Un nouveau mot de passe a été demandé pour l’utilisateur %s de Ferry. Ce code le confirme\u00a0:",
		pinValid:       "Le code est valable %s à partir de la demande.",
		pinFooter:      "Si vous n’êtes pas à l’origine de cette demande, ignorez ce message\u00a0: le mot de passe reste inchangé. Ne donnez ce code à personne.",
		from:           "De",
		noLogin:        "Aucun compte ni mot de passe n’est nécessaire pour le télécharger.",
		stop:           "Ne plus recevoir d’e-mails comme celui-ci",
		receiptSubject: "Votre fichier a été téléchargé\u00a0: %s",
		receiptIntro:   "Votre fichier a été téléchargé pour la première fois.",
		when:           "Téléchargé le",
		sentTo:         "envoyé à %s",
		link:           "Lien",
		ownLink:        "celui de votre liste de fichiers",
		receiptFooter:  "Vous recevez cet e-mail parce que vous l’avez demandé lors de l’envoi du fichier. Un lien peut être transmis\u00a0: il peut s’agir de quelqu’un d’autre.",
		minutes:        [2]string{"minute", "minutes"},
		colon:          "\u00a0: ", decimal: ",", bytes: [2]string{"octet", "octets"}, unit: "o",
		date: func(t time.Time) string {
			day := fmt.Sprint(t.Day())
			if t.Day() == 1 {
				day = "1er"
			}
			return fmt.Sprintf("%s %s %d, %s", day, nth(t.Month(), "janvier février mars avril mai juin juillet août septembre octobre novembre décembre"), t.Year(), t.Format("15:04 MST"))
		},
	}
}

func german() phrases {
	return phrases{
		lang:        "de",
		linkSubject: "%s hat dir eine Datei geschickt: %s",
		linkIntro:   "%s hat dir eine Datei geschickt.",
		file:        "Datei", size: "Größe", until: "Verfügbar bis",
		linkHere:       "Hier kannst du sie herunterladen:",
		download:       "Herunterladen",
		writes:         "%s schreibt:",
		linkFooter:     "Du bekommst diese E-Mail, weil dir %s mit Ferry, einem Dienst zur Dateiübertragung, eine Datei geschickt hat. Wenn du nicht weißt, wer das ist, öffne die Datei nicht.",
		shared:         `%s hat dir "%s" geschickt:`,
		sharedShort:    "%s hat dir eine Datei geschickt:",
		pinSubject:     "Dein Code für ein neues Passwort",
		pinIntro:       "Für den Ferry-Benutzer %s wurde ein neues Passwort angefordert. Dieser Code bestätigt es:",
		pinValid:       "Der Code gilt %s ab der Anforderung.",
		pinFooter:      "Wenn du das nicht warst, ignoriere diese Nachricht: Das Passwort bleibt, wie es ist. Gib den Code an niemanden weiter.",
		from:           "Von",
		noLogin:        "Zum Herunterladen brauchst du weder Konto noch Passwort.",
		stop:           "Keine solchen E-Mails mehr bekommen",
		receiptSubject: "Deine Datei wurde heruntergeladen: %s",
		receiptIntro:   "Deine Datei wurde zum ersten Mal heruntergeladen.",
		when:           "Heruntergeladen am",
		sentTo:         "geschickt an %s",
		link:           "Link",
		ownLink:        "der aus deiner Dateiliste",
		receiptFooter:  "Du bekommst diese E-Mail, weil du beim Hochladen darum gebeten hast. Ein Link lässt sich weitergeben: Es kann auch jemand anderes gewesen sein.",
		minutes:        [2]string{"Minute", "Minuten"},
		colon:          ": ", decimal: ",", bytes: [2]string{"Byte", "Byte"}, unit: "B",
		date: func(t time.Time) string {
			return fmt.Sprintf("%d. %s %d, %s", t.Day(), nth(t.Month(), "Januar Februar März April Mai Juni Juli August September Oktober November Dezember"), t.Year(), t.Format("15:04 MST"))
		},
	}
}

func nth(m time.Month, names string) string { return strings.Fields(names)[m-1] }

// day is a moment, in Unix seconds, for people.
func (p phrases) day(unix int64) string { return p.date(time.Unix(unix, 0).UTC()) }

// length is a number of bytes for people, in powers of 1000.
func (p phrases) length(n int64) string {
	if n < 1000 {
		return p.count(n, p.bytes)
	}
	value, prefixes := float64(n)/1000, "kMGTPE"
	for value >= 999.95 && len(prefixes) > 1 { // what would be shown as 1000.0
		value, prefixes = value/1000, prefixes[1:]
	}
	number := strings.Replace(fmt.Sprintf("%.1f", value), ".", p.decimal, 1)
	return number + "\u00a0" + prefixes[:1] + p.unit
}

// count is a number of things: one of them, or several.
func (p phrases) count(n int64, things [2]string) string {
	thing := things[1]
	if n == 1 || n == 0 && p.lang == "fr" {
		thing = things[0]
	}
	return fmt.Sprintf("%d\u00a0%s", n, thing)
}
