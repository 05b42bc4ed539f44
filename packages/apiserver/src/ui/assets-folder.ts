/**
 * Directory of the built UI in a source checkout; in the release archive it is next to the bundled program
 * (tools/deploy/src/bundled-assets-folder.ts).
 */
export const assetsFolder = new URL("../../../ui/dist/assets/", import.meta.url);
