package notify

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// phrases are what Ferry says in one language. Each %s stands for a name.
type phrases struct {
	lang string

	// Of a link. With linkIntro begin subjects and text messages too, so it has
	// only characters of the GSM alphabet, as shared: others cost double.
	linkIntro, shared           string // sender; sender and file
	from, file, size, until     string
	linkHere, download, noLogin string
	writes, linkFooter          string // sender
	stop                        string

	receiptSubject, receiptIntro, receiptFooter string
	when, link, ownLink, sentTo                 string // the word link; recipient

	pinSubject, pinFooter string
	pinIntro, pinValid    string // user; so many minutes

	colon, decimal string    // between a label and its value, in a number
	minutes, bytes [2]string // one, several
	unit           string    // the letter behind k, M, G, T
	date, months   string    // day, month, year, time
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
		lang:      "en",
		linkIntro: "%s sent you a file.",
		shared:    `%s sent you "%s":`,
		from:      "From", file: "File", size: "Size", until: "Available until",
		linkHere: "Download it here:", download: "Download", writes: "%s writes:",
		noLogin:        "The download asks for no account and no password.",
		linkFooter:     "You get this e-mail because %s sent you a file with Ferry, a file-transfer service. If you do not know who that is, do not open the file.",
		stop:           "Stop e-mails like this one",
		receiptSubject: "Your file was downloaded",
		receiptIntro:   "Your file was downloaded for the first time.",
		receiptFooter:  "You get this e-mail because you asked for it with the upload. A link can be passed on: it may have been somebody else.",
		when:           "Downloaded", sentTo: "sent to %s", link: "Link",
		ownLink:    "the one in your list of files",
		pinSubject: "Your code for a new password",
		pinIntro:   "Someone asked for a new password for the Ferry user %s. This code confirms it:",
		pinValid:   "The code is valid for %s from the request.",
		pinFooter:  "If it was not you, ignore this message: the password stays as it is. Give the code to nobody.",
		colon:      ": ", decimal: ".", unit: "B",
		minutes: [2]string{"minute", "minutes"}, bytes: [2]string{"byte", "bytes"},
		date:   "%s %s %d, %s",
		months: "January February March April May June July August September October November December",
	}
}

func italian() phrases {
	return phrases{
		lang:      "it",
		linkIntro: "%s ti ha inviato un file.",
		shared:    `%s ti ha inviato "%s":`,
		from:      "Da", file: "File", size: "Dimensione", until: "Scadenza",
		linkHere: "Scaricalo qui:", download: "Scarica", writes: "%s scrive:",
		noLogin:        "Per scaricarlo non servono né un account né una password.",
		linkFooter:     "Ricevi questa e-mail perché %s ti ha inviato un file con Ferry, un servizio per il trasferimento di file. Se non sai chi sia, non aprire il file.",
		stop:           "Non ricevere più e-mail come questa",
		receiptSubject: "Il tuo file è stato scaricato",
		receiptIntro:   "Il tuo file è stato scaricato per la prima volta.",
		receiptFooter:  "Ricevi questa e-mail perché l’hai richiesta al momento del caricamento. Un link si può passare ad altri: potrebbe essere stato qualcun altro.",
		when:           "Primo download", sentTo: "inviato a %s", link: "Link",
		ownLink:    "quello nel tuo elenco dei file",
		pinSubject: "Il tuo codice per una nuova password",
		pinIntro:   "È stata chiesta una nuova password per l’utente Ferry %s. Questo codice la conferma:",
		pinValid:   "Il codice vale %s dalla richiesta.",
		pinFooter:  "Se non l’hai chiesta tu, ignora questo messaggio: la password resta com’è. Non dare il codice a nessuno.",
		colon:      ": ", decimal: ",", unit: "B",
		minutes: [2]string{"minuto", "minuti"}, bytes: [2]string{"byte", "byte"},
		date:   "%s %s %d, %s",
		months: "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
	}
}

func spanish() phrases {
	return phrases{
		lang:      "es",
		linkIntro: "%s te ha enviado un archivo.",
		shared:    `%s te ha enviado "%s":`,
		from:      "De", file: "Archivo", size: "Tamaño", until: "Disponible hasta el",
		linkHere: "Descárgalo aquí:", download: "Descargar", writes: "%s escribe:",
		noLogin:        "Para descargarlo no hace falta ni cuenta ni contraseña.",
		linkFooter:     "Recibes este correo porque %s te ha enviado un archivo con Ferry, un servicio de transferencia de archivos. Si no sabes quién es, no abras el archivo.",
		stop:           "Dejar de recibir correos como este",
		receiptSubject: "Tu archivo se ha descargado",
		receiptIntro:   "Tu archivo se ha descargado por primera vez.",
		receiptFooter:  "Recibes este correo porque lo pediste al subir el archivo. Un enlace se puede pasar a otros: puede haber sido otra persona.",
		when:           "Descargado el", sentTo: "enviado a %s", link: "Enlace",
		ownLink:    "el de tu lista de archivos",
		pinSubject: "Tu código para una nueva contraseña",
		pinIntro:   "Se ha solicitado una nueva contraseña para el usuario %s de Ferry. Este código la confirma:",
		pinValid:   "El código es válido durante %s desde la solicitud.",
		pinFooter:  "Si no has sido tú, ignora este mensaje: la contraseña no cambia. No compartas el código con nadie.",
		colon:      ": ", decimal: ",", unit: "B",
		minutes: [2]string{"minuto", "minutos"}, bytes: [2]string{"byte", "bytes"},
		date:   "%s de %s de %d, %s",
		months: "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
	}
}

func french() phrases {
	return phrases{
		lang:      "fr",
		linkIntro: "%s vous a envoyé un fichier.",
		shared:    `%s vous a envoyé "%s":`,
		from:      "De", file: "Fichier", size: "Taille", until: "Disponible jusqu’au",
		linkHere: "Téléchargez-le ici\u00a0:", download: "Télécharger", writes: "%s écrit\u00a0:",
		noLogin:        "Aucun compte ni mot de passe n’est nécessaire pour le télécharger.",
		linkFooter:     "Vous recevez cet e-mail parce que %s vous a envoyé un fichier avec Ferry, un service de transfert de fichiers. Si vous ne savez pas de qui il s’agit, n’ouvrez pas le fichier.",
		stop:           "Ne plus recevoir d’e-mails comme celui-ci",
		receiptSubject: "Votre fichier a été téléchargé",
		receiptIntro:   "Votre fichier a été téléchargé pour la première fois.",
		receiptFooter:  "Vous recevez cet e-mail parce que vous l’avez demandé lors de l’envoi du fichier. Un lien peut être transmis\u00a0: il peut s’agir de quelqu’un d’autre.",
		when:           "Téléchargé le", sentTo: "envoyé à %s", link: "Lien",
		ownLink:    "celui de votre liste de fichiers",
		pinSubject: "Votre code pour un nouveau mot de passe",
		pinIntro:   "Un nouveau mot de passe a été demandé pour l’utilisateur %s de Ferry. Ce code le confirme\u00a0:",
		pinValid:   "Le code est valable %s à partir de la demande.",
		pinFooter:  "Si vous n’êtes pas à l’origine de cette demande, ignorez ce message\u00a0: le mot de passe reste inchangé. Ne donnez ce code à personne.",
		colon:      "\u00a0: ", decimal: ",", unit: "o",
		minutes: [2]string{"minute", "minutes"}, bytes: [2]string{"octet", "octets"},
		date:   "%s %s %d, %s",
		months: "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
	}
}

func german() phrases {
	return phrases{
		lang:      "de",
		linkIntro: "%s hat dir eine Datei geschickt.",
		shared:    `%s hat dir "%s" geschickt:`,
		from:      "Von", file: "Datei", size: "Größe", until: "Verfügbar bis",
		linkHere: "Hier kannst du sie herunterladen:", download: "Herunterladen", writes: "%s schreibt:",
		noLogin:        "Zum Herunterladen brauchst du weder Konto noch Passwort.",
		linkFooter:     "Du bekommst diese E-Mail, weil dir %s mit Ferry, einem Dienst zur Dateiübertragung, eine Datei geschickt hat. Wenn du nicht weißt, wer das ist, öffne die Datei nicht.",
		stop:           "Keine solchen E-Mails mehr bekommen",
		receiptSubject: "Deine Datei wurde heruntergeladen",
		receiptIntro:   "Deine Datei wurde zum ersten Mal heruntergeladen.",
		receiptFooter:  "Du bekommst diese E-Mail, weil du beim Hochladen darum gebeten hast. Ein Link lässt sich weitergeben: Es kann auch jemand anderes gewesen sein.",
		when:           "Heruntergeladen am", sentTo: "geschickt an %s", link: "Link",
		ownLink:    "der aus deiner Dateiliste",
		pinSubject: "Dein Code für ein neues Passwort",
		pinIntro:   "Für den Ferry-Benutzer %s wurde ein neues Passwort angefordert. Dieser Code bestätigt es:",
		pinValid:   "Der Code gilt %s ab der Anforderung.",
		pinFooter:  "Wenn du das nicht warst, ignoriere diese Nachricht: Das Passwort bleibt, wie es ist. Gib den Code an niemanden weiter.",
		colon:      ": ", decimal: ",", unit: "B",
		minutes: [2]string{"Minute", "Minuten"}, bytes: [2]string{"Byte", "Byte"},
		date:   "%s. %s %d, %s",
		months: "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
	}
}

// day is a moment, in Unix seconds, for people.
func (p phrases) day(unix int64) string {
	t := time.Unix(unix, 0).UTC()
	day := strconv.Itoa(t.Day())
	if t.Day() == 1 && p.lang == "fr" {
		day = "1er"
	}
	return fmt.Sprintf(p.date, day, strings.Fields(p.months)[t.Month()-1], t.Year(), t.Format("15:04 MST"))
}

// sent says that somebody sent a file, up to the full stop.
func (p phrases) sent() string { return strings.TrimSuffix(p.linkIntro, ".") }

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
