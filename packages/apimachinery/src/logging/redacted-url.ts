const secretParameters = /([?&](?:command|access_token|token)=)[^&]*/gi;

/** A request's URL for the log, without what exec is to run and without tokens: both may be secrets. */
export function redactedUrl(url: string): string {
  return url.replace(secretParameters, "$1--- REDACTED ---");
}
