/** Replaces `packages/apiserver/src/ui/assets-folder.ts` in the bundle. */
export const assetsFolder = new URL("./ui/", import.meta.url);
