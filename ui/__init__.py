"""What several pages share: navigation, a person's session, cached resources, the sidebar, components."""
