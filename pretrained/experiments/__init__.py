"""Results of the studies on the Experiments page that come with the app, and how they were made."""
