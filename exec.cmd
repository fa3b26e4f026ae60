@rem The "exec" of the npm scripts, for a shell that has none: scripts/run.js says what it is for.
@%*
