const secretParameters = /([?&](?:command|access_token|token)=)[^&]*/gi;

/** Redacts a request URL for the log: tokens, and the command of exec, which may contain secrets. */
export function redactedUrl(url: string): string {
  return url.replace(secretParameters, "$1--- REDACTED ---");
}
