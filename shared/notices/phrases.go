package notices

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
	file        string
	size        string
	until       string
	linkHere    string
	download    string
	writes      string // sender
	linkFooter  string // sender

	// For text messages, in the GSM alphabet alone: others cost double.
	shared      string // sender, file
	sharedShort string // sender

	pinSubject string
	pinIntro   string // user
	pinValid   string // %d minutes
	pinFooter  string

	colon   string    // between a label and its value
	decimal string    // separator
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
		linkHere:    "Download it here:",
		download:    "Download",
		writes:      "%s writes:",
		linkFooter:  "You get this message because %s asked Ferry to send it to this address. If you do not expect it, ignore it.",
		shared:      `%s sent you "%s":`,
		sharedShort: "%s sent you a file:",
		pinSubject:  "Your code for a new password",
		pinIntro:    "Someone asked for a new password for the user %s. This code confirms it:",
		pinValid:    "The code is valid for %d minutes from the request.",
		pinFooter:   "If it was not you, ignore this message: the password stays as it is. Give the code to nobody.",
		colon:       ": ", decimal: ".", bytes: [2]string{"byte", "bytes"}, unit: "B",
		date: func(t time.Time) string { return t.Format("2 January 2006, 15:04 MST") },
	}
}

func italian() phrases {
	return phrases{
		lang:        "it",
		linkSubject: "%s ti ha inviato un file: %s",
		linkIntro:   "%s ti ha inviato un file.",
		file:        "File", size: "Dimensione", until: "Disponibile fino al",
		linkHere:    "Scaricalo qui:",
		download:    "Scarica",
		writes:      "%s scrive:",
		linkFooter:  "Ricevi questo messaggio perché %s ha chiesto a Ferry di inviarlo a questo indirizzo. Se non te lo aspetti, ignoralo.",
		shared:      `%s ti ha inviato "%s":`,
		sharedShort: "%s ti ha inviato un file:",
		pinSubject:  "Il tuo codice per una nuova password",
		pinIntro:    "È stata chiesta una nuova password per l'utente %s. Questo codice la conferma:",
		pinValid:    "Il codice vale %d minuti dalla richiesta.",
		pinFooter:   "Se non sei stato tu, ignora questo messaggio: la password resta com'è. Non dare il codice a nessuno.",
		colon:       ": ", decimal: ",", bytes: [2]string{"byte", "byte"}, unit: "B",
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
		linkHere:    "Descárgalo aquí:",
		download:    "Descargar",
		writes:      "%s escribe:",
		linkFooter:  "Recibes este mensaje porque %s ha pedido a Ferry que lo envíe a esta dirección. Si no lo esperas, ignóralo.",
		shared:      `%s te ha enviado "%s":`,
		sharedShort: "%s te ha enviado un archivo:",
		pinSubject:  "Tu código para una nueva contraseña",
		pinIntro:    "Se ha pedido una nueva contraseña para el usuario %s. Este código la confirma:",
		pinValid:    "El código es válido durante %d minutos desde la solicitud.",
		pinFooter:   "Si no has sido tú, ignora este mensaje: la contraseña no cambia. No des el código a nadie.",
		colon:       ": ", decimal: ",", bytes: [2]string{"byte", "bytes"}, unit: "B",
		date: func(t time.Time) string {
			return fmt.Sprintf("%d de %s de %d, %s", t.Day(), nth(t.Month(), "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre"), t.Year(), t.Format("15:04 MST"))
		},
	}
}

func french() phrases {
	return phrases{
		lang:        "fr",
		linkSubject: "%s vous a envoyé un fichier : %s",
		linkIntro:   "%s vous a envoyé un fichier.",
		file:        "Fichier", size: "Taille", until: "Disponible jusqu’au",
		linkHere:    "Téléchargez-le ici :",
		download:    "Télécharger",
		writes:      "%s écrit :",
		linkFooter:  "Vous recevez ce message parce que %s a demandé à Ferry de l’envoyer à cette adresse. Si vous ne l’attendez pas, ignorez-le.",
		shared:      `%s vous a envoyé "%s":`,
		sharedShort: "%s vous a envoyé un fichier:",
		pinSubject:  "Votre code pour un nouveau mot de passe",
		pinIntro:    "Un nouveau mot de passe a été demandé pour l’utilisateur %s. Ce code le confirme :",
		pinValid:    "Le code est valable %d minutes à partir de la demande.",
		pinFooter:   "Si ce n’était pas vous, ignorez ce message : le mot de passe reste inchangé. Ne donnez ce code à personne.",
		colon:       " : ", decimal: ",", bytes: [2]string{"octet", "octets"}, unit: "o",
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
		linkHere:    "Hier kannst du sie herunterladen:",
		download:    "Herunterladen",
		writes:      "%s schreibt:",
		linkFooter:  "Du bekommst diese Nachricht, weil %s sie über Ferry an diese Adresse geschickt hat. Wenn du sie nicht erwartest, beachte sie nicht.",
		shared:      `%s hat dir "%s" geschickt:`,
		sharedShort: "%s hat dir eine Datei geschickt:",
		pinSubject:  "Dein Code für ein neues Passwort",
		pinIntro:    "Für den Benutzer %s wurde ein neues Passwort angefordert. Dieser Code bestätigt es:",
		pinValid:    "Der Code gilt %d Minuten ab der Anforderung.",
		pinFooter:   "Wenn du das nicht warst, beachte diese Nachricht nicht: Das Passwort bleibt, wie es ist. Gib den Code niemandem.",
		colon:       ": ", decimal: ",", bytes: [2]string{"Byte", "Byte"}, unit: "B",
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
	switch {
	case n == 1:
		return "1 " + p.bytes[0]
	case n < 1000:
		return fmt.Sprintf("%d %s", n, p.bytes[1])
	}
	value, prefixes := float64(n)/1000, "kMGTPE"
	for value >= 999.95 && len(prefixes) > 1 { // what would be shown as 1000.0
		value, prefixes = value/1000, prefixes[1:]
	}
	number := strings.Replace(fmt.Sprintf("%.1f", value), ".", p.decimal, 1)
	return number + " " + prefixes[:1] + p.unit
}
