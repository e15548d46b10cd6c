// The texts of the scripts that send files.
//
// Exports: words.

import { byId } from "./dom.js";
import { Words } from "./words.js";

export const words = new Words(JSON.parse(byId("texts").textContent));
