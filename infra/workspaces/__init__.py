"""Reports for people, where Evidently's own pages find them: `evidently ui --workspace FOLDER`."""
