/** Where the built page is, in a clone; in the archive it is beside the bundled program (tools/deploy/src/bundled-assets-folder.ts). */
export const assetsFolder = new URL("../../../ui/dist/assets/", import.meta.url);
